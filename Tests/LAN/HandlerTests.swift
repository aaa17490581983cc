import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Commands that handle what arrives: `earshot on`.
    @Suite struct Handlers {
        /// A command that logs its beginning and its end, and does what the message says once: it fails, or kills itself, its handler or
        /// the daemon, before or after its work.
        private static let script = """
            read -r number fault
            once() { mkdir "once-$EARSHOT_FROM-$number" 2>/dev/null; }
            echo "begin $EARSHOT_FROM $number" >>log
            case $fault in
            fail) if once; then exit 3; fi ;;
            command) if once; then kill -9 $$; fi ;;
            handler) if once; then kill -9 $PPID; exit 3; fi ;;
            daemon) if once; then kill -9 "$(cat daemon)"; fi ;;
            esac
            echo "done $EARSHOT_FROM $number" >>log
            case $fault in
            handler-after) if once; then kill -9 $PPID; fi ;;
            daemon-after) if once; then kill -9 "$(cat daemon)"; fi ;;
            esac
            exit 0
            """
        private static let faults = ["none", "fail", "command", "handler", "daemon", "handler-after", "daemon-after"]

        private static func lines(_ path: String) -> [String] {
            String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self).split(separator: "\n").map(String.init)
        }

        private static func messages(_ daemon: Daemon) async throws -> [ControlAPI.Message]? {
            let outcome = try await daemon.earshot("receive", "--all", "--json")
            guard outcome.status == 0 else { return nil }
            return try outcome.output.split(separator: "\n").map { try ControlJSON.decode(ControlAPI.Message.self, from: $0.utf8) }
        }

        /// Every message is handled, in the order of each sender, and none is read before its command has exited with 0, whatever is killed
        /// in between.
        @Test func everyMessageIsHandled() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let carol = try await laboratory.daemon("carol")
                try await carol.awaitPeer(bob)
                try await carol.expect(0, "invite", bob.id())
                let count = 2 * Self.faults.count
                for number in 0..<count {
                    // The faults of the two senders do not coincide.
                    try await alice.expect(0, "send", "bob", "\(100 + number) \(Self.faults[number % Self.faults.count])")
                    try await carol.expect(0, "send", "bob", "\(100 + number) \(Self.faults[(number * 3 + 1) % Self.faults.count])")
                }
                func command() throws -> Running {
                    try "\(try #require(bob.pid))".write(toFile: "\(bob.place)/daemon", atomically: true, encoding: .utf8)
                    return try bob.begin(["on", "message", "--jobs", "2", "--retry", "100ms", "--", "sh", "-c", Self.script])
                }
                var handler = try command()
                try await eventually(within: .seconds(100), "all messages are read", instead: handler.errorsSoFar) {
                    if !bob.isRunning {
                        try await bob.start()
                        try "\(try #require(bob.pid))".write(toFile: "\(bob.place)/daemon", atomically: true, encoding: .utf8)
                    }
                    if !handler.isRunning { handler = try command() }
                    guard let messages = try await Self.messages(bob) else { return false }
                    // The log is newer than the states.
                    let log = Set(Self.lines("\(bob.place)/log"))
                    for message in messages where message.state == .read {
                        let number = String(decoding: message.body.prefix(3), as: UTF8.self)
                        #expect(log.contains("done \(message.sender.name) \(number)"), "read before it was handled")
                    }
                    return messages.allSatisfy { $0.state == .read }
                }
                let log = Self.lines("\(bob.place)/log").map { $0.split(separator: " ").map(String.init) }
                for sender in ["alice", "carol"] {
                    let begun = log.filter { $0[0] == "begin" && $0[1] == sender }.map { $0[2] }
                    let done = log.filter { $0[0] == "done" && $0[1] == sender }.map { $0[2] }
                    #expect(begun == begun.sorted(), "a message waits for the earlier ones")
                    #expect(Set(done).sorted() == (0..<count).map { "\(100 + $0)" })
                    #expect(begun.count > count, "failed commands ran again")
                }
                handler.signal(SIGTERM)
                #expect(await handler.status() == 128 + SIGTERM)
            }
        }

        /// A request to stop waits for the running command; a second one terminates it. The message stays unread.
        @Test func aStopWaitsForTheCommand() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let log = "\(bob.place)/log"
                let script = "trap 'echo end >>$LOG; exit 0' TERM; echo begin >>$LOG; while :; do sleep 0.1; done"
                // Not through timeout(1), which passes on the first signal only.
                let handler = try laboratory.start(
                    on: "bob", ["\(Laboratory.binaries)/earshot", "on", "message", "--", "sh", "-c", script],
                    environment: ["EARSHOT_SOCKET": bob.socket, "LOG": log])
                try await alice.expect(0, "send", "bob", "first")
                try await alice.expect(0, "send", "bob", "second")
                try await eventually("the command runs", instead: handler.errorsSoFar) { Self.lines(log) == ["begin"] }
                // Signals in quick succession count once: the first one alone ends nothing.
                try await eventually("the command is terminated") {
                    handler.signal(SIGTERM)
                    return Self.lines(log) == ["begin", "end"]
                }
                #expect(await handler.status() == 128 + SIGTERM)
                let states = try #require(try await Self.messages(bob)).map(\.state)
                #expect(states == [.known(.read), .known(.unread)], "the command has exited with 0")
            }
        }

        @Test func itOutlivesTheDaemonAndSaysSoOnce() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let handler = try bob.begin(["on", "message", "--", "cat"])
                try await alice.expect(0, "send", "bob", "one ")
                try await eventually("it is handled") { handler.outputSoFar() == "one " }
                #expect(try await bob.stop() == 0)
                try await eventually("it is said") { !handler.errorsSoFar().isEmpty }
                try await bob.start()
                try await alice.expect(0, "send", "bob", "two", "--timeout", "60")
                try await eventually("it goes on") { handler.outputSoFar() == "one two" }
                handler.signal(SIGINT)
                let outcome = await handler.outcome()
                #expect(outcome.status == 128 + SIGINT)
                #expect(outcome.errors == "earshot: lost the connection to the daemon; waiting for it to return\n")
            }
        }

        @Test func onlyWhatIsWantedIsHandled() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await alice.expect(0, "send", "bob", "picture", "--type", "image/png")
                try await alice.expect(0, "send", "bob", "text")
                let handler = try bob.begin(
                    ["on", "message", "--from", "alice", "--type", "text/*", "--", "sh", "-c", "cat; echo \" $EARSHOT_TRUST\""])
                try await eventually("the text is handled", instead: handler.errorsSoFar) { handler.outputSoFar() == "text unknown\n" }
                try await bob.expect(0, "trust", alice.id())
                try await alice.expect(0, "send", "bob", "more")
                try await eventually("the trust is known") { handler.outputSoFar() == "text unknown\nmore trusted\n" }
                #expect(try await bob.receive(1).map(\.contentType) == ["image/png"])
                let missing = try await bob.earshot("on", "message", "--", "no-such-command")
                #expect(missing.status == 127 && missing.errors == "earshot: cannot run no-such-command: no such file or directory\n")
            }
        }

        /// A larger run, to see what one handler costs.
        @Test func manyMessages() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let count = 2000
                let lines = (0..<count).map { "message \($0)\n" }.joined()
                try lines.write(toFile: "\(alice.place)/lines", atomically: true, encoding: .utf8)
                let sending = try laboratory.start(
                    on: "alice", ["sh", "-c", "'\(Laboratory.binaries)/earshot' send bob --lines <'\(alice.place)/lines'"],
                    environment: ["EARSHOT_SOCKET": alice.socket])
                #expect(await sending.outcome().status == 0)
                let start = ContinuousClock.now
                let handler = try bob.begin(["on", "message", "--", "true"])
                try await eventually(within: .seconds(100), "all are read", instead: handler.errorsSoFar) {
                    try await bob.status().counts.unread == 0
                }
                measured("\(count) messages through `earshot on message -- true`", .now - start)
                handler.signal(SIGTERM)
                #expect(await handler.status() == 128 + SIGTERM)
            }
        }
    }
}
