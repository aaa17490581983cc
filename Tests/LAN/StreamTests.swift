import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Streams {
        /// The usual use: a folder through a pipe, with either side first, and the same bytes at the receiver.
        @Test(arguments: ["reader", "writer"])
        func aFolderThroughAPipe(first: String) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await Self.shell(laboratory, alice, "mkdir folder && head -c 20M /dev/urandom > folder/a && echo b > 'folder/ b'")
                let read = "set -o pipefail; mkdir out && $earshot stream accept backup | tar x -C out"
                let write = "set -o pipefail; tar c folder | $earshot stream open bob backup"
                let (reader, writer): (Running, Running)
                if first == "reader" {
                    reader = try Self.begin(laboratory, bob, read)
                    // The command waits without a limit.
                    try await Task.sleep(for: .milliseconds(300))
                    writer = try Self.begin(laboratory, alice, write)
                } else {
                    writer = try Self.begin(laboratory, alice, write)
                    try await eventually("it waits") { try await bob.streams().contains { $0.state == .opening } }
                    reader = try Self.begin(laboratory, bob, read)
                }
                for process in [writer, reader] {
                    let outcome = await process.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                }
                let compared = try await Running(["/usr/bin/diff", "-r", "\(alice.place)/folder", "\(bob.place)/out/folder"]).outcome()
                #expect(compared.status == 0, "\(compared)")
                for daemon in [alice, bob] {
                    let row = try #require(try await daemon.streams().first)
                    #expect(row.state == .closed && row.error == nil && row.transferred > 20 << 20)
                }
            }
        }

        @Test func twentyAtOnce() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await Self.shell(
                    laboratory, alice, "for i in $(seq 20); do { echo $i; head -c 3M /dev/urandom; } > in$i; done")
                let readers = try Self.begin(
                    laboratory, bob,
                    "for i in $(seq 20); do $earshot stream accept s$i > out$i & p=\"$p $!\"; done; for i in $p; do wait $i || exit; done")
                let writers = try Self.begin(
                    laboratory, alice,
                    "for i in $(seq 20); do $earshot stream open bob s$i < in$i & p=\"$p $!\"; done; for i in $p; do wait $i || exit; done")
                // Messages are sent in between.
                for number in 0..<5 { try await alice.expect(0, "send", "bob", "message \(number)") }
                for process in [writers, readers] {
                    let outcome = await process.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                }
                for number in 1...20 {
                    let compared = try await Running(["/usr/bin/cmp", "\(alice.place)/in\(number)", "\(bob.place)/out\(number)"]).outcome()
                    #expect(compared.status == 0, "\(compared)")
                }
            }
        }

        /// For each end that goes away, the error at the other end.
        @Test(
            arguments: [
                ("reader", 1), ("reader's daemon", 75), ("writer", 1), ("writer's daemon", 75),
                ("reader, by Ctrl-C", 1), ("writer, by Ctrl-C", 1),
            ] as [(String, Int32)])
        func aKilledEndIsReportedAtTheOther(_ who: String, _ expected: Int32) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                // The writer has sent one line and is idle.
                let writer = try Self.begin(
                    laboratory, alice, "exec 3< <(echo x; exec sleep 60); echo $$ > writer; exec $earshot stream open bob s <&3")
                let reader = try Self.begin(laboratory, bob, "echo $$ > reader; exec $earshot stream accept s")
                try await eventually("the line is there") { reader.outputSoFar() == "x\n" }
                switch who {
                case "reader, by Ctrl-C": try await Self.shell(laboratory, bob, "kill -INT $(cat reader)")
                case "writer, by Ctrl-C": try await Self.shell(laboratory, alice, "kill -INT $(cat writer)")
                case "reader": try await Self.shell(laboratory, bob, "kill -9 $(cat reader)")
                case "writer": try await Self.shell(laboratory, alice, "kill -9 $(cat writer)")
                case "reader's daemon": await bob.kill()
                default: await alice.kill()
                }
                let outcome = await (who.hasPrefix("reader") ? writer : reader).outcome()
                #expect(outcome.status == expected, "\(outcome)")
            }
        }

        /// The writer waits, and another command of either side cancels the stream.
        @Test(arguments: [true, false]) func aStreamIsCancelledByItsID(isAccepted: Bool) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let writer = try Self.begin(laboratory, alice, "exec 3< <(echo x; exec sleep 60); exec $earshot stream open bob s <&3")
                let reader = isAccepted ? try Self.begin(laboratory, bob, "exec $earshot stream accept s") : nil
                try await eventually("the line is there") { reader == nil || reader?.outputSoFar() == "x\n" }
                let wanted: ControlAPI.Stream.State = isAccepted ? .open : .opening
                try await eventually("the stream is there") {
                    try await bob.decode(ControlAPI.StreamList.self, "stream", "list").streams.first?.state == .known(wanted)
                }
                let id = try #require(try await bob.decode(ControlAPI.StreamList.self, "stream", "list").streams.first).id.description
                try await (isAccepted ? alice : bob).expect(0, "stream", "cancel", String(id.prefix(8)))
                #expect(await writer.outcome().status != 0)
                if let reader { #expect(await reader.outcome().status == 1) }
                let again = try await alice.earshot("stream", "cancel", id)
                #expect(again.status == 65 && again.errors.contains("is closed already"), "\(again)")
                for text in [String(id.prefix(7)), "s"] { try await alice.expect(65, "stream", "cancel", text) }
            }
        }

        /// The daemon has passed on all data when the reader finds that it cannot store it: the writer must not be told that the stream
        /// arrived.
        @Test(arguments: ["hi", "head -c 3M /dev/zero"])
        func aReaderOnAFullDisk(what: String) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let reader = try Self.begin(laboratory, bob, "exec $earshot stream accept s > /dev/full")
                let source = what == "hi" ? "printf hi" : what
                let writer = try Self.begin(laboratory, alice, "set -o pipefail; \(source) | $earshot stream open bob s")
                let (read, written) = (await reader.outcome(), await writer.outcome())
                #expect(read.status == 74 && read.errors.contains("cannot write to standard output"), "\(read)")
                #expect(written.status != 0, "\(written)")
                if what == "hi" { #expect(written.status == 1, "\(written)") }
            }
        }

        /// A relay passes bytes and no descriptors.
        @Test func aRelayPassesAStreamAsBytes() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let (near, far) = (try HeldSocket(before: alice), try HeldSocket(before: bob))
                let reader = try Self.begin(laboratory, bob, "$earshot stream accept s --socket \(far.path) > out")
                let writer = try Self.begin(
                    laboratory, alice, "head -c 3M /dev/urandom > in; $earshot stream open bob s --socket \(near.path) < in")
                for process in [writer, reader] {
                    let outcome = await process.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                }
                #expect(try await LAN.equal("\(alice.place)/in", "\(bob.place)/out"))
                near.close()
                far.close()
            }
        }

        /// A stopped reader slows its writer down to a halt, and costs no memory.
        @Test func aReaderThatStops() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let reader = try Self.begin(laboratory, bob, "$earshot stream accept s | { echo $BASHPID > reader; exec cat > out; }")
                let writer = try Self.begin(laboratory, alice, "head -c 300M /dev/zero | $earshot stream open bob s")
                try await eventually("bytes flow") { try await bob.streams().contains { $0.transferred > 1 << 20 } }
                try await Self.shell(laboratory, bob, "kill -STOP $(cat reader)")
                var last: UInt64 = 0
                try await eventually("nothing moves any more") {
                    let now = try await alice.streams().first?.transferred ?? 0
                    defer { last = now }
                    return now == last && now > 0
                }
                #expect(last < 300 << 20)
                for daemon in [alice, bob] { #expect(try Self.residentMebibytes(of: daemon) < 128) }
                try await alice.expect(0, "send", "bob", "still here")
                try await Self.shell(laboratory, bob, "kill -CONT $(cat reader)")
                #expect(await writer.outcome().status == 0)
                #expect(await reader.outcome().status == 0)
                #expect(try FileManager.default.attributesOfItem(atPath: "\(bob.place)/out")[.size] as? Int == 300 << 20)
            }
        }

        /// Runs a script of a peer's user in the daemon's directory; `$earshot` is the command.
        private static func begin(_ laboratory: Laboratory, _ daemon: Daemon, _ script: String) throws -> Running {
            try laboratory.start(
                on: daemon.host, ["bash", "-c", "cd '\(daemon.place)'; earshot='\(Laboratory.binaries)/earshot'; \(script)"],
                environment: ["EARSHOT_SOCKET": daemon.socket])
        }

        private static func shell(_ laboratory: Laboratory, _ daemon: Daemon, _ script: String) async throws {
            let outcome = try await Self.begin(laboratory, daemon, script).outcome()
            try #require(outcome.status == 0, "\(script): \(outcome)")
        }

        private static func residentMebibytes(of daemon: Daemon) throws -> Int {
            let pid = try #require(daemon.pid)
            let text = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
            return try #require(Int(line.split(separator: " ").dropFirst().first ?? "")) / 1024
        }
    }
}

extension Daemon {
    func streams() async throws -> [ControlAPI.Stream] { try await self.decode(ControlAPI.StreamList.self, "stream", "list").streams }
}
