import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Questions and replies: `earshot ask`, `earshot on message --reply` and `earshot send --in-reply-to`.
    @Suite struct Replies {
        /// A command that replies, and that kills its handler before it has exited, or some milliseconds later: before or after the daemon has
        /// the reply, or after the message is marked read. Each run prints something else.
        private static let script = """
            read -r number
            echo "$number" >>log
            case $number in *[02468]) if mkdir "before-$number" 2>/dev/null; then kill -9 $PPID; exit 0; fi ;; esac
            if mkdir "after-$number" 2>/dev/null; then (sleep "0.0$number"; kill -9 $PPID) >/dev/null 2>&1 & fi
            echo "$number: run $(grep -c "^$number$" log)"
            """

        private static func replies(_ daemon: Daemon) async throws -> [ControlAPI.Message] {
            let lines = try await daemon.expect(0, "receive", "--all", "--json").output.split(separator: "\n")
            return try lines.map { try ControlJSON.decode(ControlAPI.Message.self, from: $0.utf8) }
        }

        /// Every question gets one reply, whenever the handler is killed.
        @Test func everyQuestionIsAnsweredOnce() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                func command() throws -> Running {
                    try bob.begin(["on", "message", "--retry", "100ms", "--reply", "--", "sh", "-c", Self.script])
                }
                var handler = try command()
                let numbers = ["01", "02", "03", "04", "05", "06", "09", "10"]
                for number in numbers {
                    let asking = try alice.begin(["ask", "bob", number])
                    try await eventually(within: .seconds(60), "\(number) is answered", instead: handler.errorsSoFar) {
                        if !handler.isRunning { handler = try command() }
                        return !asking.isRunning
                    }
                    let outcome = await asking.outcome()
                    #expect(outcome.status == 0 && outcome.output.hasPrefix("\(number): run "), "\(outcome.errors)")
                }
                try await eventually(within: .seconds(60), "all questions are read", instead: handler.errorsSoFar) {
                    if !handler.isRunning { handler = try command() }
                    return try await bob.status().counts.unread == 0
                }
                let replies = try await Self.replies(alice)
                #expect(replies.count == numbers.count && Set(replies.map(\.inReplyTo)).count == numbers.count)
                #expect(replies.allSatisfy { $0.state == .read && $0.inReplyTo != nil })
                handler.signal(SIGTERM)
                _ = await handler.status()
            }
        }

        /// Only a reply of the peer that was asked counts. A reply is not replied to.
        @Test func onlyTheAskedPeerReplies() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let carol = try await laboratory.daemon("carol")
                try await carol.awaitPeer(bob)
                try await carol.expect(0, "invite", bob.id())
                let asking = try bob.begin(["ask", "alice", "who is there?"])
                let question = try #require(try await alice.receive(1).first)
                try await carol.expect(0, "send", "bob", "carol", "--in-reply-to", question.id.description)
                try await alice.expect(0, "send", "bob", "alice", "--in-reply-to", question.id.description)
                let outcome = await asking.outcome()
                #expect(outcome.status == 0 && outcome.output == "alice")
                let left = try await bob.receive(1)
                #expect(left.map(\.sender.name) == ["carol"] && left.map(\.inReplyTo) == [question.id])

                try await bob.expect(0, "send", "alice", "a reply to nothing", "--in-reply-to", MessageID.random().description)
                let handler = try alice.begin(["on", "message", "--reply", "--", "cat"])
                #expect(try await bob.expect(0, "ask", "alice", "echo").output == "echo")
                #expect(try await alice.status().counts.unread == 1)
                handler.signal(SIGTERM)
                _ = await handler.status()
                let silent = try await bob.earshot("ask", "alice", "and now?", "--timeout", "1")
                #expect(silent.status == 75 && silent.errors.hasPrefix("earshot: no reply from alice in 1 s\n"))
                #expect(try await alice.stop() == 0)
                try await bob.expect(79, "ask", "alice", "still there?", "--timeout", "1")
            }
        }
    }
}
