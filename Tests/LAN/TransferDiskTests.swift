import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The receiver's disks: full disks, and disks other than the spool's.
    @Suite struct TransferDisks {
        /// A small disk on bob's host, in the laboratory's directory, and a function that unmounts it.
        private func disk(_ laboratory: Laboratory, _ size: String) async throws -> String {
            try await laboratory.host("bob")
            let disk = "\(laboratory.place)/disk"
            try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
            try await laboratory.lab("host", "exec", "bob", "--", "mount", "-t", "tmpfs", "-o", "size=\(size)", "none", disk)
            return disk
        }

        private func session(_ laboratory: Laboratory, _ environment: [String: String]) async throws -> (alice: Daemon, bob: Daemon) {
            let alice = try await laboratory.daemon("alice")
            let bob = try await laboratory.daemon(
                "bob", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"].merging(environment) { $1 })
            try await alice.awaitPeer(bob)
            try await alice.expect(0, "invite", bob.id())
            try await bob.awaitConnected(to: alice)
            return (alice, bob)
        }

        private func onBob(_ laboratory: Laboratory, _ command: String...) async throws -> Outcome {
            try await Running([Laboratory.script, "host", "exec", "bob", "--"] + command).outcome()
        }

        @Test func aFullDiskAtTheOfferAndInTheMiddle() async throws {
            try await Laboratory.run { laboratory in
                let disk = try await self.disk(laboratory, "12m")
                let (alice, bob) = try await self.session(
                    laboratory, ["EARSHOT_RESOURCES_DIRECTORY": disk, "EARSHOT_RESOURCES_RESERVE": "0%"])
                try await LAN.make("large", mebibytes: 16, at: alice)
                try await LAN.make("fits", mebibytes: 8, at: alice)
                let refused = try await alice.expect(74, "file", "send", "bob", "large")
                #expect(refused.errors.contains("do not fit"))
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "fits"])
                    try await eventually("some is there") {
                        try await bob.files().contains { $0.name == "fits" && $0.transferred > 1 << 20 }
                    }
                    // Another process fills the disk meanwhile.
                    let filled = try await self.onBob(laboratory, "sh", "-c", "head -c 20M /dev/zero > \(disk)/filler; ls \(disk)")
                    #expect(filled.output == "filler\n")
                    // The file arrived and stays in the spool: no partial file appears.
                    #expect(await sending.outcome().status == 0)
                }
                let row = try #require(try await bob.files().last)
                #expect(row.state == .completed && row.inSpool == true && row.error?.code == "no-space")
                #expect(try await self.onBob(laboratory, "ls", "-A", disk).output == "filler\n")
                try await bob.expect(0, "file", "get", "fits")
                #expect(try await LAN.equal("\(alice.place)/fits", "\(bob.place)/fits"))
                // The session continues, and with space again so do transfers.
                try await alice.expect(0, "send", "bob", "still here")
                _ = try await self.onBob(laboratory, "rm", "\(disk)/filler")
                try await alice.expect(0, "file", "send", "bob", "fits")
                #expect(try await self.onBob(laboratory, "cmp", "\(alice.place)/fits", "\(disk)/fits").status == 0)
                _ = try await self.onBob(laboratory, "umount", "-l", disk)
            }
        }

        /// For data that does not fit, a limit on the size of files (LimitFSIZE= in a unit) acts like a full disk, on either side. It ends
        /// no daemon.
        @Test func aLimitOnFileSizesIsNoSpace() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await self.session(laboratory, [:])
                try await LAN.make("large", mebibytes: 8, at: alice)
                func limit(_ daemon: Daemon, _ bytes: String) async throws {
                    let outcome = try await Running(["prlimit", "--pid", "\(try #require(daemon.pid))", "--fsize=\(bytes)"]).outcome()
                    try #require(outcome.status == 0, "\(outcome)")
                }
                try await limit(bob, "2097152:")
                let refused = try await alice.expect(74, "file", "send", "bob", "large")
                #expect(refused.errors.contains("there is no space for it"), "\(refused)")
                try await limit(alice, "2097152:")
                let queued = try await alice.expect(74, "file", "send", "bob", "large", "--queue")
                #expect(queued.errors.contains("file too large"), "\(queued)")
                for daemon in [alice, bob] { try await limit(daemon, "unlimited:") }
                // Both daemons are still the same processes, and the session continues.
                try await alice.expect(0, "send", "bob", "still here")
                try await alice.expect(0, "file", "send", "bob", "large")
            }
        }

        /// The daemon is killed repeatedly while it moves files to another file system: confirmed files are there, and no partial ones.
        @Test func killedWhilePublishing() async throws {
            try await Laboratory.run { laboratory in
                let disk = try await self.disk(laboratory, "512m")
                let (alice, bob) = try await self.session(laboratory, ["EARSHOT_RESOURCES_DIRECTORY": disk])
                try await LAN.make("big", mebibytes: 48, at: alice)
                let sending = try alice.begin(["file", "send", "bob", "big"])
                for bytes in [8, 40, 48, 48] {
                    try await eventually("\(bytes) MiB are there") {
                        try await bob.files().contains { $0.transferred >= bytes << 20 || $0.state == .completed }
                    }
                    try await bob.restart()
                    let listed = try await self.onBob(laboratory, "ls", "-A", disk).output
                    if listed != "" {
                        #expect(listed == "big\n")
                        #expect(try await self.onBob(laboratory, "cmp", "\(alice.place)/big", "\(disk)/big").status == 0)
                    }
                }
                #expect(await sending.outcome().status == 0)
                let row = try #require(try await bob.files().first)
                #expect(row.state == .completed)
                if row.inSpool == true { try await bob.expect(0, "file", "get", "big", "-o", bob.place) }
                let path = row.inSpool == true ? "\(bob.place)/big" : "\(disk)/big"
                #expect(try await self.onBob(laboratory, "cmp", "\(alice.place)/big", path).status == 0)
                _ = try await self.onBob(laboratory, "umount", "-l", disk)
            }
        }
    }
}
