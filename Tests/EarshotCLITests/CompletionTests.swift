import ArgumentParser
import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

@Suite struct CompletionTests {
    private static let date = Date(timeIntervalSince1970: 1_700_000_000)

    private static func peer(
        _ name: String, _ id: PeerID, trust: ControlAPI.Trust = .unknown, state: ControlAPI.MemberState = .notConnected,
        proven: Bool = true
    ) -> ControlAPI.Peer {
        ControlAPI.Peer(
            id: id, name: name, presence: .known(.nearby), state: .known(state), trust: .known(trust), proven: proven, addresses: [],
            discoveryInfo: [:], sources: [], firstSeen: Self.date, lastSeen: Self.date)
    }

    private static func source(_ peers: [ControlAPI.Peer], sessions: [ControlAPI.Session] = []) -> CompletionSource {
        CompletionSource(peers: peers, sessions: sessions, invitations: [], resources: [])
    }

    @Test(arguments: [
        ("bob", "'bob'"), ("odd name", "'odd name'"), ("it's", #"'it'\''s'"#), ("~root", "'~root'"), (#"a\b"#, #"'a\b'"#), ("*", "'*'"),
        ("$(reboot)", "'ABCDEFGHIJKL'"), ("`reboot`", "'ABCDEFGHIJKL'"), ("a\u{202E}b", "'ABCDEFGHIJKL'"), ("-rf", "'ABCDEFGHIJKL'"),
        ("two\nlines", "'ABCDEFGHIJKL'"),
    ])
    func bashObeysNoName(name: String, line: String) {
        let word = CompletionWord(name, id: "ABCDEFGHIJKLMNOPQRST", isClear: true, note: "nearby")
        #expect(word.line(for: .bash) == line)
    }

    @Test func othersHaveNotes() {
        let word = CompletionWord(#"a:b\c"#, id: "ABCDEFGHIJKLMNOPQRST", isClear: true, note: "trusted")
        #expect(word.line(for: .zsh) == #"a\:b\\c:trusted"#)
        #expect(word.line(for: .fish) == "a:b\\c\ttrusted")
        #expect(word.line(for: nil) == #"a:b\c"#)
        #expect(CompletionWord("x\ty", id: "ABCDEFGHIJKLM", isClear: true, note: "").line(for: .fish) == "ABCDEFGHIJKL\t")
    }

    @Test func nameOfTwoIsOfferedById() {
        let source = Self.source([Self.peer("bob", "AAAAAAAAAAAAAAAA"), Self.peer("bob", "BBBBBBBBBBBBBBBB"), Self.peer("carol", "CCCC")])
        #expect(source.peers { _ in true }.map(\.text) == ["AAAAAAAAAAAA", "BBBBBBBBBBBB", "carol"])
    }

    /// The beginning of an id that is only advertised names no peer. A name that is the beginning of another peer's id means that other
    /// peer.
    @Test func whatIsOfferedMeansWhatIsShown() {
        let advertised: PeerID = "CCCCCCCCCCCC"
        let source = Self.source([
            Self.peer("bob", advertised, proven: false), Self.peer("bob", "BBBBBBBBBBBBBBBB"), Self.peer("bbbbbbbb", "DDDDDDDDDDDDDDDD"),
            Self.peer("bbbbbbb", "EEEEEEEEEEEEEEEE"),
        ])
        #expect(source.peers { _ in true }.map(\.text) == [advertised.description, "BBBBBBBBBBBB", "DDDDDDDDDDDD", "bbbbbbb"])
    }

    @Test func membersAndTrustedCanBeReached() {
        let member = ControlAPI.Member(peerID: "AAAA", name: "alice", state: .known(.connected))
        let session = ControlAPI.Session(id: "s", members: [member], createdAt: Self.date)
        let peers = [Self.peer("alice", "AAAA", trust: .trusted, state: .connected), Self.peer("bob", "BBBB", trust: .trusted)]
        let source = Self.source(peers + [Self.peer("stranger", "CCCC")], sessions: [session])
        #expect(source.reachable.map(\.text) == ["alice", "bob"])
        #expect(source.members.map(\.note) == ["connected"])
    }

    @Test(arguments: [
        (["earshot", "invite", "--socket", "/a b", ""], "/a b"), (["earshot", "invite", "--socket=/x", ""], "/x"),
        (["earshot", "invite", "--socket", "=", "/x", ""], "/x"), (["earshot", "invite", "--socket", #"/a\ b"#], "/a b"),
        (["earshot", "invite", "--socket", "'/a b'", ""], "/a b"), (["earshot", "invite", "--socket"], nil),
        (["earshot", "invite", ""], nil),
    ])
    func socketOnTheLine(words: [String], socket: String?) {
        #expect(CompletionLine.socket(in: words) == socket)
    }
}
