import ArgumentParser
import EarshotClient
import ModelLaws
import Testing

@testable import EarshotCLI

/// The grammar of `earshot ask` and of replies.
@Suite struct AskCommandTests {
    @Test(arguments: [
        ["bob", "disk", "space"], ["bob", "-"], ["bob", "x", "--timeout", "2min", "--type", "text/x-status"], ["bob", "--", "-n"],
    ])
    func questionsAreAccepted(words: [String]) throws {
        let command = try #require(try EarshotCommand.parseAsRoot(["ask"] + words) as? AskCommand)
        #expect(command.peer == "bob" && !command.text.isEmpty)
    }

    @Test(arguments: [
        [], ["bob"], ["", "x"], ["bob", ""], ["bob", "x", "--timeout", "0"], ["bob", "x", "--timeout", "25h"], ["bob", "x", "--type", ""],
    ])
    func otherQuestionsAreRefused(words: [String]) {
        #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(["ask"] + words) }
    }

    @Test func aReplyNamesAMessage() throws {
        let words = ["send", "bob", "yes", "--in-reply-to"]
        let id = MessageID(high: 1, low: 2)
        let command = try #require(try EarshotCommand.parseAsRoot(words + [id.description]) as? SendCommand)
        #expect(command.inReplyTo == id)
        #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(words + ["the last one"]) }
    }

    /// The reply of a program to a message has one id, which differs from those of its replies to other messages and other senders.
    @Test func aReplyHasOneID() {
        let (question, other) = (MessageID(high: 1, low: 2), MessageID(high: 1, low: 3))
        let ids = [MessageID.reply(to: question, of: "p"), .reply(to: other, of: "p"), .reply(to: question, of: "q"), question]
        #expect(Set(ids).count == 4)
        #expect(ids[0] == .reply(to: question, of: "p"))
    }
}
