import EarshotClient
import Foundation
import Glibc
import Testing

extension LAN {
    /// Transfers across interruptions.
    @Suite struct Resume {
        /// The part that is stopped in the middle of a transfer.
        enum Loss: String, CaseIterable, Sendable {
            case sender, receiver, both, cable
        }

        @Test(arguments: Loss.allCases) func aTransferGoesOn(after loss: Loss) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("film.mkv", mebibytes: 10, at: alice)
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "film.mkv"])
                    try await eventually("a part is there") { try await bob.files().contains { $0.transferred > 2 << 20 } }
                    try await self.take(loss, alice, bob, laboratory)
                    let kept = try #require(try await bob.files().first)
                    #expect(kept.state == .paused || kept.state == .transferring)
                    #expect(kept.transferred > 2 << 20, "what had arrived is not sent again")
                    let back = ContinuousClock.now
                    try await self.giveBack(loss, laboratory)
                    try await eventually("it moves on") {
                        let row = try #require(try await bob.files().first)
                        return row.state == .completed || row.transferred > kept.transferred
                    }
                    measured("a transfer moves again after: \(loss.rawValue)", ContinuousClock.now - back)
                    #expect(ContinuousClock.now - back < .seconds(20), "10 s are promised, and this machine may be busy")
                    let outcome = await sending.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                }
                #expect(try await alice.files().map(\.state.rawValue) == ["completed"])
                let rows = try await bob.files()
                #expect(rows.map(\.state.rawValue) == ["completed"])
                try await bob.expect(0, "file", "get", "film.mkv")
                #expect(try await LAN.equal("\(alice.place)/film.mkv", "\(bob.place)/film.mkv"))
            }
        }

        /// The daemon runs as another user than the command, which passes the open file. The file needs no name any more.
        @Test(arguments: [Loss.receiver, .cable]) func aTransferOfAnOpenFileGoesOn(after loss: Loss) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("film.mkv", mebibytes: 10, at: alice)
                // The socket's owner is the user whose files the daemon is taken to read.
                try #require(chown(alice.socket, 1, gid_t.max) == 0)
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "film.mkv"])
                    try await eventually("a part is there") { try await bob.files().contains { $0.transferred > 2 << 20 } }
                    try FileManager.default.moveItem(atPath: "\(alice.place)/film.mkv", toPath: "\(alice.place)/moved")
                    try await self.take(loss, alice, bob, laboratory)
                    try await self.giveBack(loss, laboratory)
                    let outcome = await sending.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                    #expect(outcome.errors.contains("film.mkv resumes when it is back"), "\(outcome)")
                }
                #expect(try await alice.files().map(\.state.rawValue) == ["completed"])
                try await bob.expect(0, "file", "get", "film.mkv")
                #expect(try await LAN.equal("\(alice.place)/moved", "\(bob.place)/film.mkv"))
            }
        }

        private func take(_ loss: Loss, _ alice: Daemon, _ bob: Daemon, _ laboratory: Laboratory) async throws {
            switch loss {
            case .sender:
                await alice.kill()
                try await self.expectPaused(at: bob)
                try await alice.start()
            case .receiver:
                await bob.kill()
                try await self.expectPaused(at: alice)
                try await bob.start()
            case .both:
                await bob.kill()
                await alice.kill()
                try await alice.start()
                try await self.expectPaused(at: alice)
                try await bob.start()
            case .cable:
                try await laboratory.lab("link", "alice", "down")
                try await self.expectPaused(at: bob)
                try await self.expectPaused(at: alice)
            }
        }

        private func giveBack(_ loss: Loss, _ laboratory: Laboratory) async throws {
            if loss == .cable { try await laboratory.lab("link", "alice", "up") }
        }

        private func expectPaused(at daemon: Daemon) async throws {
            // A disconnected cable is noticed only by silence.
            try await eventually(within: .seconds(40), "\(daemon.name) says that it is paused") {
                try await daemon.files().map(\.state.rawValue) == ["paused"]
            }
        }

        @Test func cancelledWhileTheOtherIsAway() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("film.mkv", mebibytes: 10, at: alice)
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "film.mkv"])
                    try await eventually("some is there") { try await bob.files().contains { $0.transferred > 1 << 20 } }
                    await bob.kill()
                    try await self.expectPaused(at: alice)
                    // The effect of Ctrl-C, sent twice as wrappers like `timeout` do, which counts as one request.
                    sending.signal(SIGINT)
                    sending.signal(SIGINT)
                    #expect(await sending.status() == 130)
                    try await eventually("alice has it cancelled") { try await alice.files().map(\.state.rawValue) == ["cancelled"] }
                    try await bob.start()
                    try await eventually("bob was told") { try await bob.files().map(\.state.rawValue) == ["cancelled"] }
                }
                #expect(try LAN.bytes(under: "\(bob.place)/state/spool") == 0, "nothing of it is kept")
                try await alice.expect(0, "send", "bob", "never mind")
            }
        }

        @Test func queuedOverRestartsOfBoth() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                #expect(try await bob.stop() == 0)
                try await LAN.make("one", mebibytes: 1, at: alice)
                try await LAN.make("two", mebibytes: 1, at: alice)
                for name in ["one", "two"] {
                    try FileManager.default.copyItem(atPath: "\(alice.place)/\(name)", toPath: "\(alice.place)/kept-\(name)")
                }
                let outcome = try await alice.expect(0, "file", "send", "bob", "one", "two", "--queue", "--digest", "sha256")
                // The user's own daemon makes copies too, as the packaged service does.
                for name in ["one", "two"] { try FileManager.default.removeItem(atPath: "\(alice.place)/\(name)") }
                #expect(outcome.errors.contains("one is queued for bob") && outcome.errors.contains("two is queued for bob"))
                #expect(try await alice.files().map(\.state.rawValue) == ["offered", "offered"])
                #expect(try await alice.expect(0, "file", "list").output.components(separatedBy: "queued").count == 3)
                try await alice.restart()
                try await bob.start()
                try await eventually("both arrived") { try await alice.files().map(\.state.rawValue) == ["completed", "completed"] }
                try await bob.expect(0, "file", "get")
                for name in ["one", "two"] { #expect(try await LAN.equal("\(alice.place)/kept-\(name)", "\(bob.place)/\(name)")) }
                let sum = try await Running(["/usr/bin/sha256sum", "\(alice.place)/kept-one"]).outcome().output.prefix(64)
                #expect(try await bob.files().first { $0.name == "one" }?.digest == "sha256:\(sum)")
                // To a present peer, the file is sent at once, and the command waits.
                try await alice.expect(0, "file", "send", "bob", "kept-one", "--queue")
                #expect(try await bob.files().last?.state == .known(.completed))
            }
        }
    }
}

extension LAN {
    /// Creates a file of random bytes in a daemon's directory.
    static func make(_ name: String, mebibytes: Int, at daemon: Daemon) async throws {
        let made = try await Running(
            ["/usr/bin/head", "-c", "\(mebibytes)M", "/dev/urandom"], log: "\(daemon.place)/\(name)"
        ).status()
        try #require(made == 0)
    }

    static func equal(_ one: String, _ other: String) async throws -> Bool {
        try await Running(["/usr/bin/cmp", one, other]).outcome().status == 0
    }

    /// Runs `body` while traffic from alice's host is limited to 5 MB a second, so that a transfer can be hit in the middle.
    static func slowly(_ laboratory: Laboratory, _ body: () async throws -> Void) async throws {
        let qdisc = ["host", "exec", "alice", "--", "tc", "qdisc"]
        try await laboratory.lab(qdisc + ["add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst", "64kb", "latency", "200ms"])
        let result: Result<Void, any Error>
        do {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        try await laboratory.lab(qdisc + ["del", "dev", "eth0", "root"])
        try result.get()
    }

    /// The number of bytes of all files below a directory.
    static func bytes(under directory: String) throws -> Int {
        try FileManager.default.subpathsOfDirectory(atPath: directory).reduce(0) { sum, path in
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(path)")
            return attributes[.type] as? FileAttributeType == .typeRegular ? sum + (attributes[.size] as? Int ?? 0) : sum
        }
    }
}
