import ArgumentParser
import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

@Suite struct TrustWordsTests {
    private func peer(_ name: String, conflict: PeerID?, sources: [String]) -> ControlAPI.Peer {
        .init(
            id: "A", name: name, presence: .known(.nearby), state: .known(.notConnected),
            trust: .known(.unknown), proven: true, addresses: [], discoveryInfo: [:], sources: sources, nameConflict: conflict,
            firstSeen: Date(timeIntervalSince1970: 0), lastSeen: Date(timeIntervalSince1970: 0))
    }

    @Test func aNameWithAnotherKeyIsWarnedOf() throws {
        #expect(NameWarning.line(self.peer("bob", conflict: nil, sources: [])) == nil)
        let other: PeerID = "BBBBBBBBBBBB"
        let new = try #require(NameWarning.line(self.peer("b\u{202E}ob", conflict: other, sources: ["avahi"])))
        #expect(new.contains("known with another key, BBBBBBBBBBBB") && new.contains("earshot verify AAAAAAAAAAAA"))
        #expect(!new.unicodeScalars.contains("\u{202E}"))
        let known = try #require(NameWarning.line(self.peer("bob", conflict: other, sources: ["avahi", "store"])))
        #expect(known.contains("not the bob that you know"))
        // Both peers are known, so that the name is ambiguous.
        let namesake = self.peer("bob", conflict: nil, sources: ["store"])
        let two = try #require(NameWarning.line(self.peer("bob", conflict: other, sources: ["store"]), namesake: namesake))
        #expect(two.contains("two peers that you know are called bob") && two.contains("AAAAAAAAAAAA") && two.contains("BBBBBBBBBBBB"))
    }

    /// If a file waits for a peer that is not connected, that is reported at once.
    @Test func aFileThatWaitsSaysForWhom() {
        func words(_ state: ControlAPI.MemberState, _ presence: ControlAPI.Peer.Presence) -> String? {
            let peer = ControlAPI.Peer(
                id: "A", name: "b\u{202E}ob", presence: .known(presence), state: .known(state), trust: .known(.unknown), proven: true,
                addresses: [], discoveryInfo: [:], sources: [], firstSeen: Date(timeIntervalSince1970: 0),
                lastSeen: Date(timeIntervalSince1970: 0))
            return TransferFollower.waitingWords("report.pdf", for: peer)
        }
        #expect(words(.connected, .nearby) == nil)
        #expect(words(.notConnected, .away) == "b\\u{202E}ob is away; report.pdf waits for it")
        #expect(words(.connecting, .nearby) == "report.pdf waits for a connection to b\\u{202E}ob")
    }

    @Test func timesAreBounded() {
        for words in [["verify", "bob", "--timeout", "0"], ["verify", "bob", "--timeout", "2h"], ["trust", "bob", "--for", "0"]] {
            #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(words) }
        }
        #expect(throws: Never.self) { try EarshotCommand.parseAsRoot(["verify", "bob", "--timeout", "5min"]) }
        #expect(throws: Never.self) { try EarshotCommand.parseAsRoot(["trust", "bob", "--for", "1h"]) }
        #expect(throws: Never.self) { try EarshotCommand.parseAsRoot(["policy", "explain", "bob", "--json"]) }
    }

    @Test func whatIsTypedAfterIdentityIsHandedOn() throws {
        let command = try #require(
            try EarshotCommand.parseAsRoot(["identity", "export", "-o", "file", "--state-directory", "x"]) as? IdentityCommand)
        #expect(command.arguments == ["export", "-o", "file", "--state-directory", "x"])
    }

    @Test func policyIsATable() {
        let policy = ControlAPI.PeerPolicy(
            peerID: "A", peerName: "bob", trust: .known(.trusted), trustSource: .known(.authority),
            verified: .known(.matched),
            decisions: [.init(action: .known(.invite), decision: .known(.allow), rule: "invitations.from_trusted = accept", reason: "why")])
        #expect(Render.trust(policy) == "bob (AAAAAAAAAAAA) is trusted by an authority, digits matched\n")
    }
}
