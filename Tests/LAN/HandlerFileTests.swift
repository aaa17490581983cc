import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Files and events that are handled as they arrive: `earshot on file`, `earshot file get --follow` and `earshot on EVENT`.
    @Suite struct FileHandlers {
        /// Fails at the first run, kills its handler at the second one after its work, and succeeds at the third one.
        private static let script = """
            echo "$EARSHOT_FROM $EARSHOT_NAME $1" >>log
            if mkdir once 2>/dev/null; then exit 3; fi
            cat "$1" >>content
            if mkdir twice 2>/dev/null; then kill -9 $PPID; fi
            """

        private static func text(_ path: String) -> String {
            String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
        }

        /// The daemon keeps a file until a command has exited with 0, even if the handler or the daemon is killed.
        @Test func theDaemonKeepsAFileUntilItIsHandled() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try "text".write(toFile: "\(alice.place)/a $(b).txt", atomically: true, encoding: .utf8)
                try await alice.expect(0, "file", "send", "bob", "a $(b).txt")
                try FileManager.default.createDirectory(atPath: "\(bob.place)/saved", withIntermediateDirectories: true)
                func command() throws -> Running {
                    try bob.begin(
                        ["on", "file", "--from", "alice", "-o", "saved", "--retry", "1s", "--", "sh", "-c", Self.script, "sh", "{}"])
                }
                var handler = try command()
                try await eventually("the command has failed", instead: handler.errorsSoFar) { !handler.errorsSoFar().isEmpty }
                #expect(handler.errorsSoFar() == "earshot: sh exited with status 3 for a $(b).txt from alice; trying again in 1 s\n")
                #expect(try await bob.files().map(\.inSpool) == [true])
                try await bob.restart()
                try await eventually("the handler is killed", instead: handler.errorsSoFar) { !handler.isRunning }
                #expect(Self.text("\(bob.place)/content") == "text")
                #expect(try await bob.files().map(\.inSpool) == [true], "the command has not ended before its handler")
                handler = try command()
                try await eventually("the file is handled", instead: handler.errorsSoFar) {
                    try await bob.files().map(\.inSpool) == [false]
                }
                let names = ["a $(b).txt saved/a $(b).txt", "a $(b).txt saved/a $(b).txt", "a $(b) (2).txt saved/a $(b) (2).txt"]
                #expect(Self.text("\(bob.place)/log") == names.map { "alice \($0)\n" }.joined())
                handler.signal(SIGTERM)
                #expect(await handler.status() == 128 + SIGTERM)
            }
        }

        @Test func filesAreSavedAsTheyArrive() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                for name in ["one", ".two", "three"] {
                    try name.write(toFile: "\(alice.place)/\(name)", atomically: true, encoding: .utf8)
                }
                try await alice.expect(0, "file", "send", "bob", "one")
                let saving = try bob.begin(["file", "get", "--follow"])
                try await eventually("the first file is saved", instead: saving.errorsSoFar) { saving.outputSoFar() == "one\n" }
                try await alice.expect(0, "file", "send", "bob", ".two")
                try await eventually("the hidden file is named") { saving.errorsSoFar().contains("not fetched: .two from alice") }
                try await bob.restart()
                try await alice.awaitConnected(to: bob)
                try await alice.expect(0, "file", "send", "bob", "three")
                try await eventually("the next file is saved", instead: saving.errorsSoFar) { saving.outputSoFar() == "one\nthree\n" }
                for name in ["one", "three"] { #expect(Self.text("\(bob.place)/\(name)") == name) }
                saving.signal(SIGINT)
                #expect(await saving.status() == 128 + SIGINT)
                let refused = try await bob.earshot("file", "get", "--follow", "-o", "-")
                #expect(refused.status == 64)
            }
        }

        @Test func eventsAreHandledOnceAndGapsTold() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let script = "cat; echo \"$EARSHOT_EVENT $EARSHOT_FROM\"; exit 3"
                let handler = try bob.begin(["on", "message.received", "--since", "0", "--", "sh", "-c", script])
                try await alice.expect(0, "send", "bob", "first")
                try await eventually("the event is handled", instead: handler.errorsSoFar) {
                    handler.outputSoFar().hasSuffix("message.received alice\n") && handler.errorsSoFar().contains("exited with status 3")
                }
                let event = try ControlJSON.decode(ControlAPI.Event.self, from: handler.outputSoFar().prefix { $0 != "\n" }.utf8)
                #expect(event.message?.body == Array("first".utf8))
                try await bob.restart()
                try await alice.awaitConnected(to: bob)
                try await eventually("the gap is told") { handler.errorsSoFar().contains(" gap events ") }
                try await alice.expect(0, "send", "bob", "second")
                try await eventually("it goes on", instead: handler.errorsSoFar) { handler.outputSoFar().split(separator: "\n").count == 4 }
                handler.signal(SIGTERM)
                #expect(await handler.status() == 128 + SIGTERM)
            }
        }
    }
}
