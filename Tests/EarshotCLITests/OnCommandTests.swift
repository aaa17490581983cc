import ArgumentParser
import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The grammar of `earshot on`, and the variables of events.
@Suite struct OnCommandTests {
    @Test(arguments: [
        ["message", "--", "lp"], ["message", "--from", "bob", "--from", "carol", "--type", "image/*", "--", "lp", "--socket", "-n"],
        ["file"], ["file", "-o", "d", "--jobs", "64", "--retry", "100ms"], ["file", "--group", "team", "--", "lp", "{}"],
        ["peer.found", "--since", "0", "--", "cat"], ["*", "--", "cat"], ["message", "--reply", "--json", "--", "uptime"],
    ])
    func commandsAreAccepted(words: [String]) throws {
        let command = try #require(try EarshotCommand.parseAsRoot(["on"] + words) as? OnCommand)
        #expect(command.command == Array(words.drop { $0 != "--" }.dropFirst()))
    }

    @Test(arguments: [
        ["message"], ["message", "lp"], ["message", "--"], ["peer.fuond", "--", "cat"], ["message", "--since", "1", "--", "lp"],
        ["message", "-o", "d", "--", "lp"], ["file", "--type", "a/b", "--", "lp"], ["file", "--since", "1"], ["file", "-o", ""],
        ["peer.found", "--from", "bob", "--", "cat"], ["peer.found", "--jobs", "2", "--", "cat"], ["message", "--jobs", "0", "--", "lp"],
        ["message", "--jobs", "65", "--", "lp"], ["message", "--retry", "99ms", "--", "lp"], ["message", "--from", "", "--", "lp"],
        ["message", "--type", "text", "--", "lp"], ["file", "--reply", "--", "lp"], ["peer.found", "--reply", "--", "cat"],
    ])
    func otherCommandsAreRefused(words: [String]) {
        #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(["on"] + words) }
    }

    /// A command of `earshot` is mistyped in front of `--` only.
    @Test func theSocketMayPrecedeTheVerb() {
        let words = ArgumentOrder.verbFirst(["--socket", "s", "on", "message", "--", "earshot", "--socket", "t"])
        #expect(words == ["on", "--socket", "s", "message", "--", "earshot", "--socket", "t"])
    }

    @Test func followingTakesNoNames() throws {
        _ = try EarshotCommand.parseAsRoot(["file", "get", "--follow", "-o", "d", "--hidden"])
        for words in [["--follow", "name"], ["--follow", "-o", "-"]] {
            #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(["file", "get"] + words) }
        }
    }

    @Test func anEventBecomesVariables() {
        let peer: PeerID = "p"
        let stream = ControlAPI.Stream(
            id: "s", direction: .known(.incoming), peerID: peer, peerName: "bob", name: "a\nb", state: .known(.opening), transferred: 0,
            bytesPerSecond: 0, openedAt: Date(timeIntervalSince1970: 0))
        let event = ControlAPI.Event(epoch: "e", seq: 1, time: nil, type: .known(.streamOpened), stream: stream)
        let lines = HandlerVariables(event, socket: "s").lines
        #expect(lines.contains("EARSHOT_EVENT=stream.opened") && lines.contains("EARSHOT_FROM=bob"))
        #expect(lines.contains("EARSHOT_NAME=a\\nb") && lines.contains("EARSHOT_FROM_ID=\(peer)"))
        let change = ControlAPI.Event(epoch: "e", seq: 2, time: nil, type: "of.a.later.release")
        #expect(HandlerVariables(change, socket: "s").lines.contains("EARSHOT_EVENT=of.a.later.release"))
    }
}
