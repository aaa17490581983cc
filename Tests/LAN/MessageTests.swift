import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Messages {
        @Test func thereAndBack() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let waiting = try bob.begin(["receive", "--json", "--count", "1", "--timeout", "60"])
                try await alice.expect(0, "send", "bob", "hello", "bob")
                let outcome = await waiting.outcome()
                #expect(outcome.status == 0)
                let message = try ControlJSON.decode(ControlAPI.Message.self, from: outcome.output.utf8)
                #expect(String(decoding: message.body, as: UTF8.self) == "hello bob")
                #expect(message.sender.name == "alice")
                #expect(message.sender.id == (try await alice.id()))
                #expect(message.contentType.hasPrefix("text/plain"))

                try await bob.expect(0, "send", "alice", "hello yourself")
                let shown = try await alice.expect(0, "receive", "--count", "1")
                #expect(shown.output.contains("bob") && shown.output.contains("hello yourself"))
                try await alice.expect(75, "receive", "--count", "1", "--timeout", "1")

                // Read messages can be shown again, and unread ones stay unread.
                try await bob.expect(0, "send", "alice", "one more")
                let all = try await alice.expect(0, "receive", "--all", "--since", "1h").output
                #expect(all.contains("hello yourself") && all.hasSuffix("one more\n"))
                #expect(try await alice.expect(0, "receive", "--all", "--since", "0", "--raw").output.isEmpty)
                #expect(try await alice.expect(0, "receive", "--raw").output == "one more")
            }
        }

        @Test func twoHundredInOrder() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let loop = try laboratory.start(
                    on: "alice", ["bash", "-c", "for i in {1..200}; do \"$EARSHOT\" send bob \"message $i\" || exit; done"],
                    environment: Self.environment(of: alice))
                let received = try await bob.receive(200, seconds: 60)
                #expect(await loop.status() == 0)
                #expect(received.map { String(decoding: $0.body, as: UTF8.self) } == (1...200).map { "message \($0)" })
            }
        }

        /// Every line that was answered with `delivered` is on disk, whatever was killed meanwhile; each message exists once, in order.
        @Test func aStreamOfLinesSurvivesAReceiverThatIsKilled() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let count = 1500
                let feed = "for i in {1..\(count)}; do echo \"$i\"; ((i % 20)) || sleep 0.02; done"
                let sending = try laboratory.start(
                    on: "alice", ["bash", "-c", "\(feed) | \"$EARSHOT\" send bob --lines --json --timeout 60"],
                    environment: Self.environment(of: alice))
                for mark in [300, 900] {
                    try await eventually(within: .seconds(120), "\(mark) lines are answered") {
                        sending.outputSoFar().utf8.count { $0 == UInt8(ascii: "\n") } >= mark
                    }
                    try await bob.restart()
                }
                let outcome = await sending.outcome()
                #expect(outcome.status == 0, "\(outcome.errors)")
                let results = try outcome.output.split(separator: "\n").map {
                    try ControlJSON.decode(ControlAPI.MessageLineResult.self, from: $0.utf8)
                }
                #expect(results.map(\.line) == (1...UInt64(count)).map { $0 })
                #expect(results.allSatisfy { $0.recipients?.first?.status == .known(.delivered) })
                let received = try await bob.receive(count, seconds: 100)
                #expect(received.map { String(decoding: $0.body, as: UTF8.self) } == (1...count).map { "\($0)" })
            }
        }

        @Test func nothingLostWhenTheReceiverIsKilled() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let count = 1000
                let began = ContinuousClock.now
                let loop = try laboratory.start(
                    on: "alice",
                    ["bash", "-c", "for i in {1..\(count)}; do \"$EARSHOT\" send bob \"$i\" >/dev/null 2>&1; echo \"$i $?\"; done"],
                    environment: Self.environment(of: alice))
                for mark in [200, 500] {
                    try await eventually(within: .seconds(120), "\(mark) messages are sent") {
                        loop.outputSoFar().split(separator: "\n").count >= mark
                    }
                    try await bob.restart()
                }
                let codes = (await loop.outcome()).output.split(separator: "\n").map { $0.split(separator: " ").compactMap { Int($0) } }
                measured("\(count) messages in a shell loop, the receiver killed twice", ContinuousClock.now - began)
                #expect(codes.map(\.first) == (1...count).map { $0 })
                let confirmed = codes.filter { $0.last == 0 }.compactMap(\.first)
                // All messages are confirmed, except those that were pending while the receiver was down; none of these waits past its
                // deadline.
                #expect(confirmed.count >= count - 4)

                let received = try await bob.receive(count, seconds: 2).compactMap { Int(String(decoding: $0.body, as: UTF8.self)) }
                #expect(Set(confirmed).subtracting(received).isEmpty, "confirmed, and lost")
                #expect(Set(received).count == received.count, "delivered twice")
                #expect(received == received.sorted(), "out of order")
            }
        }

        /// The message is queued, both daemons are killed and restarted: everything arrives once and in order, and the sender learns that
        /// it was read.
        @Test func whatIsQueuedOutlivesBoth() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                await bob.kill()
                let count = 20
                var ids: [String] = []
                for number in 1...count {
                    let receipt = try await alice.decode(ControlAPI.MessageReceipt.self, "send", "bob", "--queue", "\(number)")
                    #expect(receipt.recipients.map(\.status) == [.known(.queued)])
                    ids.append(receipt.messageID.description)
                    if number == count / 2 { try await alice.restart() }
                }
                try await alice.restart()
                let waiting = try await alice.earshot("outbox", "show", String(ids[0].prefix(8)))
                #expect(waiting.status == 0 && waiting.output.contains("queued"), "\(waiting)")
                try await bob.start()
                try await alice.awaitConnected(to: bob)
                try await alice.restart()
                let received = try await bob.receive(count, seconds: 60)
                #expect(received.map { String(decoding: $0.body, as: UTF8.self) } == (1...count).map { "\($0)" })
                #expect(received.map(\.id.description) == ids)
                try await eventually("the sender knows that it was read") {
                    try await alice.earshot("outbox", "show", ids[0]).output.contains("read")
                }
                #expect(try await bob.earshot("outbox", "show", ids[0]).errors.contains("was received, not sent"))
                try await bob.expect(75, "receive", "--timeout", "1")
                try await alice.restart()
                let done = try await alice.decode(ControlAPI.MessageReceipt.self, "send", "bob", "and now")
                #expect(done.recipients.map(\.status) == [.known(.delivered)])
            }
        }

        /// Sent to all peers, and delivered only to waiting programs.
        @Test func unreliableAndToAll() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let listening = try bob.begin(["receive", "--follow", "--count", "2", "--timeout", "60"])
                // Before the first message arrives, a peer may not be waiting yet.
                try await eventually("bob hears it") {
                    try await alice.expect(0, "send", "--all", "--mode", "unreliable", "psst")
                    return listening.outputSoFar().contains("(unreliable): psst")
                }
                try await alice.expect(0, "send", "--all", "done")
                let outcome = await listening.outcome()
                #expect(outcome.status == 0)
                #expect(try await bob.receive(2, seconds: 2).allSatisfy { $0.mode == .reliable })
                await bob.kill()
                try await alice.expect(75, "send", "bob", "--mode", "unreliable", "gone")
            }
        }

        @Test func hostileTextIsShownEscaped() async throws {
            try await Laboratory.run { laboratory in
                // Names may contain format characters; this one would reverse the rest of a line.
                let name = "ali\u{202E}ce"
                let mallory = try await laboratory.daemon(name, on: "alice")
                let bob = try await laboratory.daemon("bob", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await mallory.awaitPeer(bob)
                try await bob.awaitPeer(mallory)
                try await mallory.expect(0, "invite", "bob")
                let body = "\u{1B}[2Jgone\u{200B}\u{2066}\nbob 12:00: a forged line\r\u{7}"
                try await mallory.expect(0, "send", "bob", body)

                let received = try await bob.decode(ControlAPI.PeerList.self, "peers").peers
                #expect(received.map(\.name) == [name], "stored as it came")
                let shown = [
                    try await bob.expect(0, "peers"), try await bob.expect(0, "sessions"),
                    try await bob.expect(0, "receive", "--count", "1"),
                    try await bob.expect(68, "invite", "\(name)#"),
                ]
                for outcome in shown {
                    let text = outcome.output + outcome.errors
                    for scalar in ["\u{1B}", "\u{202E}", "\u{200B}", "\u{2066}", "\r", "\u{7}"] {
                        #expect(!text.contains(scalar), "a raw character in \(text.debugDescription)")
                    }
                }
                let lines = shown[2].output.split(separator: "\n")
                #expect(lines.dropFirst().allSatisfy { $0.hasPrefix(" ") }, "further lines are indented: \(lines)")
                #expect(lines.contains { $0.contains("a forged line") })
            }
        }

        /// The rate of a shell loop that calls the command line.
        static func environment(of daemon: Daemon) -> [String: String] {
            ["EARSHOT": "\(Laboratory.binaries)/earshot", "EARSHOT_SOCKET": daemon.socket]
        }
    }
}
