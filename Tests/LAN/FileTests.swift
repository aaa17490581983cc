import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Files {
        @Test func sixtyFourMebibytes() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("music.flac", mebibytes: 64, at: alice)
                let began = ContinuousClock.now
                try await alice.expect(0, "file", "send", "bob", "music.flac")
                measured("a file of 64 MiB, debug build", ContinuousClock.now - began)

                let row = try #require(try await bob.files().first)
                #expect(row.name == "music.flac")
                #expect(row.state == .completed)
                #expect(row.direction == .incoming)
                #expect(row.size == 64 << 20)
                #expect(row.transferred == 64 << 20)
                #expect(row.digest != nil)
                #expect(try await alice.files().map(\.state.rawValue) == ["completed"])

                try await bob.expect(0, "file", "get", "music.flac")
                #expect(try await LAN.equal("\(alice.place)/music.flac", "\(bob.place)/music.flac"))
                #expect(try await bob.files().map(\.id) == [row.id], "the row stays")
            }
        }

        @Test func getOverwritesNothing() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("notes.txt", mebibytes: 1, at: alice)
                try Data("mine".utf8).write(to: URL(fileURLWithPath: "\(bob.place)/notes.txt"))
                try await alice.expect(0, "file", "send", "bob", "notes.txt")
                try await bob.expect(0, "file", "get", "notes.txt")
                #expect(FileManager.default.contents(atPath: "\(bob.place)/notes.txt") == Data("mine".utf8))
                #expect(try await LAN.equal("\(alice.place)/notes.txt", "\(bob.place)/notes (2).txt"))

                // An empty file, and a file to standard output.
                _ = FileManager.default.createFile(atPath: "\(alice.place)/empty", contents: Data())
                try await alice.expect(0, "file", "send", "bob", "empty")
                #expect(try await bob.expect(0, "file", "get", "empty", "-o", "-").output.isEmpty)
                try Data("one line\n".utf8).write(to: URL(fileURLWithPath: "\(alice.place)/line"))
                try await alice.expect(0, "file", "send", "bob", "line")
                #expect(try await bob.expect(0, "file", "get", "line", "-o", "-").output == "one line\n")
            }
        }

        /// A pipe does not show whether its reader failed, or only looked at the data.
        @Test func whatWasWrittenToAPipeStaysWithTheDaemon() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("notes.txt", mebibytes: 1, at: alice)
                try FileManager.default.createDirectory(atPath: "\(alice.place)/photos", withIntermediateDirectories: false)
                try Data("one".utf8).write(to: URL(fileURLWithPath: "\(alice.place)/photos/one"))
                try await alice.expect(0, "file", "send", "bob", "notes.txt", "photos")
                for name in ["notes.txt", "photos"] {
                    for _ in 0..<2 { #expect(try await !bob.expect(0, "file", "get", name, "-o", "-").output.isEmpty) }
                }
                #expect(try await bob.files().map(\.inSpool) == [true, true])
                try await bob.expect(0, "file", "get")
                #expect(try await bob.files().map(\.inSpool) == [false, false])
                #expect(try await LAN.equal("\(alice.place)/notes.txt", "\(bob.place)/notes.txt"))
                #expect(FileManager.default.contents(atPath: "\(bob.place)/photos/one") == Data("one".utf8))
            }
        }

        /// The sender chooses the name, and a shell or another program may act on such a file.
        @Test func whatBeginsWithADotIsNamed() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                for name in [".bashrc", ".profile", "plan"] {
                    try await LAN.make(name, mebibytes: 1, at: alice)
                    try await alice.expect(0, "file", "send", "bob", name)
                }
                let got = try await bob.expect(0, "file", "get")
                #expect(got.output == "plan\n" && got.errors.contains("not fetched: .bashrc from alice"), "\(got)")
                #expect(try await bob.expect(0, "file", "get", ".bashrc").output == ".bashrc\n")
                #expect(try await bob.expect(0, "file", "get", "--hidden").output == ".profile\n")
            }
        }

        /// Deletes by name or id. If the daemon does not hold a file, the error names it, and nothing is deleted.
        @Test func filesAreDeletedByNameOrID() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                for name in ["one", "two", "three"] {
                    try await LAN.make(name, mebibytes: 1, at: alice)
                    try await alice.expect(0, "file", "send", "bob", name)
                }
                let ids = Dictionary(try await bob.files().map { ($0.name, $0.id.description) }) { one, _ in one }
                let mistyped = try await bob.earshot("file", "delete", "one", "four")
                #expect(mistyped.status == 65 && mistyped.errors.contains("no such file: four"), "\(mistyped)")
                #expect(try await bob.files().count == 3)

                let one = try await bob.expect(0, "file", "delete", "one")
                #expect(one.output.isEmpty && one.errors.contains("deleted one"), "\(one)")
                let two = try #require(ids["two"])
                let json = try await bob.expect(0, "file", "delete", two, "two", "--json")
                #expect(try Self.names(json) == ["two"], "given twice, it is deleted once")
                #expect(try await bob.files().map(\.name) == ["three"])

                try await bob.expect(0, "file", "get", "three")
                let fetched = try await bob.earshot("file", "delete", "three")
                #expect(fetched.status == 65 && fetched.errors.contains("three was already fetched"), "\(fetched)")
                let sent = try await alice.earshot("file", "delete", "three")
                #expect(sent.status == 65 && sent.errors.contains("three was sent from this machine"), "\(sent)")
                #expect(try await LAN.equal("\(alice.place)/three", "\(bob.place)/three"))
            }
        }

        /// A file that may not be on disk yet stays with the daemon. The file is empty: nothing can be written to such an output, so that
        /// syncing is the first step that fails.
        @Test func whatCannotBeSavedStaysWithTheDaemon() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                _ = FileManager.default.createFile(atPath: "\(alice.place)/empty", contents: Data())
                try await alice.expect(0, "file", "send", "bob", "empty")
                _ = FileManager.default.createFile(atPath: "\(bob.place)/output", contents: Data())
                let script = "import os, sys; os.dup2(os.open('output', os.O_PATH), 1); os.execv(sys.argv[1], sys.argv[1:])"
                let command = ["\(Laboratory.binaries)/earshot", "file", "get", "empty", "-o", "-"]
                let got = try await Running(
                    [Laboratory.script, "host", "exec", bob.host, "--", "/usr/bin/env", "python3", "-c", script] + command,
                    environment: ["EARSHOT_SOCKET": bob.socket], directory: bob.place
                ).outcome()
                #expect(got.status == 74 && got.errors.contains("cannot write to standard output"), "\(got)")
                #expect(try await bob.files().map(\.inSpool) == [true])
                try await bob.expect(0, "file", "get", "empty")
                #expect(try await bob.files().map(\.inSpool) == [false])
            }
        }

        /// A script gets the results in one document, even if a later file failed.
        @Test func whatWasDoneBeforeAFailureIsPrinted() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("one", mebibytes: 1, at: alice)
                try FileManager.default.createDirectory(atPath: "\(alice.place)/pipe", withIntermediateDirectories: false)
                try #require(mkfifo("\(alice.place)/pipe/p", 0o600) == 0)
                let sent = try await alice.earshot("file", "send", "bob", "one", "pipe", "--json")
                #expect(sent.status != 0 && sent.errors.contains("pipe/p"), "\(sent)")
                #expect(try Self.names(sent) == ["one"])
                // The content of the second file has been fetched already.
                let got = try await bob.earshot("file", "get", "one", "one", "--json")
                #expect(got.status != 0, "\(got)")
                #expect(try Self.names(got) == ["one"])
                #expect(try await LAN.equal("\(alice.place)/one", "\(bob.place)/one"))
            }
        }

        /// If the daemon goes away after the last byte, the file is saved, and the output shows its path, although the daemon may still
        /// have a copy.
        @Test func whatIsSavedIsSaidWhereTheDaemonMayHaveItStill() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                for name in ["one", "two"] {
                    try await LAN.make(name, mebibytes: 1, at: alice)
                    try await alice.expect(0, "file", "send", "bob", name)
                }
                let held = try HeldSocket(before: bob, holding: "DELETE /v1/resources/")
                held.decide(.dropped)
                let plain = try await bob.earshot("file", "get", "one", "--socket", held.path)
                #expect(plain.status == 69 && plain.output == "one\n", "\(plain)")
                #expect(plain.errors.contains("one is saved as one, and may still be with the daemon: "), "\(plain)")
                let json = try await bob.earshot("file", "get", "two", "--json", "--socket", held.path)
                #expect(json.status == 69 && json.errors.contains("two is saved as two, and may still"), "\(json)")
                #expect(try Self.names(json) == ["two"])
                for name in ["one", "two"] { #expect(try await LAN.equal("\(alice.place)/\(name)", "\(bob.place)/\(name)")) }
                held.close()
            }
        }

        /// A relay passes bytes and no descriptors.
        @Test func aRelayPassesFilesAsBytes() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("one", mebibytes: 1, at: alice)
                let (near, far) = (try HeldSocket(before: alice), try HeldSocket(before: bob))
                try await alice.expect(0, "file", "send", "bob", "one", "--queue", "--socket", near.path)
                try await eventually("it is there") { try await bob.files().map(\.state) == [.known(.completed)] }
                try await bob.expect(0, "file", "get", "one", "--socket", far.path)
                #expect(try await LAN.equal("\(alice.place)/one", "\(bob.place)/one"))
                near.close()
                far.close()
            }
        }

        private static func names(_ outcome: Outcome) throws -> [String] {
            try ControlJSON.decode(ControlAPI.ResourceList.self, from: outcome.output.utf8).resources.map(\.name)
        }

        @Test(arguments: ["alice", "bob"])
        func eitherSideCancelsAFile(by canceller: String) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                // A slow link, so that there is time to cancel.
                try await Self.shape(laboratory, "add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst", "64kb", "latency", "200ms")
                try await LAN.make("film.mkv", mebibytes: 64, at: alice)
                let sending = try alice.begin(["file", "send", "bob", "film.mkv"])
                try await eventually("bob receives") {
                    try await bob.files().contains { $0.state == .transferring && $0.transferred > 0 }
                }
                let daemon = canceller == "alice" ? alice : bob
                let row = try #require(try await daemon.files().first)
                try await daemon.expect(0, "file", "cancel", row.id.description)
                let outcome = await sending.outcome()
                #expect(outcome.status == 1, "\(outcome)")
                for daemon in [alice, bob] {
                    try await eventually("\(daemon.name) has it cancelled") {
                        try await daemon.files().map(\.state.rawValue) == ["cancelled"]
                    }
                }
                try await Self.shape(laboratory, "del", "dev", "eth0", "root")
                #expect(try LAN.bytes(under: "\(bob.place)/state") < 4 << 20, "nothing of it is kept")
                // The session continues.
                try await alice.expect(0, "send", "bob", "never mind")
            }
        }

        /// Shapes the traffic that leaves alice's host.
        private static func shape(_ laboratory: Laboratory, _ arguments: String...) async throws {
            try await laboratory.lab(["host", "exec", "alice", "--", "tc", "qdisc"] + arguments)
        }
    }
}
