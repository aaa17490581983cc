import EarshotClient
import Foundation
import Glibc
import Testing

extension LAN {
    /// Limits on the bandwidth of files.
    @Suite struct Bandwidth {
        @Test func aLimitedFile() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("two", mebibytes: 2, at: alice)
                let start = ContinuousClock.now
                try await alice.expect(0, "file", "send", "bob", "two", "--limit", "1M")
                #expect(ContinuousClock.now - start >= .seconds(2))
                try await bob.expect(0, "file", "get", "two")
                #expect(try await LAN.equal("\(alice.place)/two", "\(bob.place)/two"))
                // The rest would take hours. A message does not wait for it.
                let sending = try alice.begin(["file", "send", "bob", "two", "--limit", "1K"])
                try await eventually("bytes move") { try await bob.files().contains { $0.state == .transferring && $0.transferred > 0 } }
                try await alice.expect(0, "send", "bob", "hello")
                #expect(try await bob.receive(1).count == 1)
                sending.signal(SIGINT)
                let outcome = await sending.outcome()
                #expect(outcome.status == 130, "\(outcome)")
                try await eventually("it is cancelled on both sides") {
                    let states = try await alice.files().map(\.state) + bob.files().map(\.state)
                    return states.filter { $0 == .cancelled }.count == 2
                }
                try await alice.expect(64, "file", "send", "bob", "two", "--limit", "1023")
            }
        }

        /// The daemons' limits hold for a running transfer as soon as they are read again.
        @Test(arguments: ["send_limit", "receive_limit"]) func aLimitThatIsLiftedByAReload(_ limit: String) async throws {
            try await Laboratory.run { laboratory in
                let file = "\(laboratory.place)/earshotd.conf"
                let accepting = "[invitations]\nfrom_unknown = accept\n"
                try (accepting + "[resources]\n\(limit) = 1K\n").write(toFile: file, atomically: true, encoding: .utf8)
                let alice = try await laboratory.daemon("alice", arguments: ["--config", file])
                let bob = try await laboratory.daemon("bob", arguments: ["--config", file])
                try await alice.awaitPeer(bob)
                try await alice.expect(0, "invite", bob.id())
                try await bob.awaitConnected(to: alice)
                let status = try await bob.status().local
                #expect((status?.sendLimit ?? status?.receiveLimit) == 1024)
                #expect(try await bob.expect(0, "status").output.contains("at most 1.0 kB/s"))
                try await LAN.make("ten", mebibytes: 10, at: alice)
                let sending = try alice.begin(["file", "send", "bob", "ten"])
                try await eventually("bytes move") { try await bob.files().contains { $0.transferred > 0 } }
                #expect(try await bob.files().allSatisfy { $0.transferred < 1 << 20 })
                try accepting.write(toFile: file, atomically: true, encoding: .utf8)
                for daemon in [alice, bob] { kill(try #require(daemon.pid), SIGHUP) }
                let outcome = await sending.outcome()
                #expect(outcome.status == 0, "\(outcome)")
                #expect(try await bob.status().local?.receiveLimit == nil)
            }
        }
    }
}
