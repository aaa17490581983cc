import EarshotClient
import Foundation
import Glibc
import Testing

extension LAN {
    /// Directories across interruptions, and on disks without enough space.
    @Suite struct TreeFaults {
        /// Creates many incompressible files, some of them large, with empty directories and links between them.
        private static let make = """
            set -e; umask 022; mkdir tree; cd tree
            i=0; while [ $i -lt 40 ]; do
                mkdir -p $i/empty; head -c 12000 /dev/urandom | (cd $i; split -b 300 -a 2 - f)
                head -c 400000 /dev/urandom > $i/large; ln -s large $i/link; chmod 640 $i/fab; i=$((i + 1))
            done
            find . -depth -exec touch -h -d '2011-11-11 11:11:11.123456789 UTC' {} +
            """

        /// All attributes of a directory's entries that must arrive, one line per entry.
        private static let list = """
            cd "$1"; find . -printf '%P %y %m %T@ %l\\n' | LC_ALL=C sort; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum
            """

        private static func shell(_ script: String, _ arguments: String..., at daemon: Daemon) async throws -> String {
            let outcome = try await Running(
                [Laboratory.script, "host", "exec", daemon.host, "--", "/bin/sh", "-c", script, "sh"] + arguments, directory: daemon.place
            ).outcome()
            try #require(outcome.status == 0, "\(outcome)")
            return outcome.output
        }

        private func isEqual(_ alice: Daemon, _ bob: Daemon, _ path: String) async throws -> Bool {
            try await Self.shell(Self.list, "tree", at: alice) == Self.shell(Self.list, path, at: bob)
        }

        /// Either side is killed in the middle of the entries, more than once: entries that arrived are not sent again, and the result is
        /// correct.
        @Test(arguments: ["sender", "receiver"]) func killedInTheMiddle(_ who: String) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                _ = try await Self.shell(Self.make, at: alice)
                let victim = who == "sender" ? alice : bob
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "tree"])
                    for part in [1 << 20, 8 << 20] {
                        try await eventually("a part is there") { try await bob.files().contains { $0.transferred > part } }
                        await victim.kill()
                        if victim !== bob {
                            try await eventually(within: .seconds(40), "it is paused") {
                                try await bob.files().first?.state == .known(.paused)
                            }
                        }
                        try await victim.start()
                        #expect(try #require(try await bob.files().first).transferred > part / 2, "what had arrived is not sent again")
                    }
                    let outcome = await sending.outcome()
                    #expect(outcome.status == 0, "\(outcome)")
                }
                #expect(try await bob.files().map(\.state.rawValue) == ["completed"])
                try await bob.expect(0, "file", "get", "tree")
                #expect(try await self.isEqual(alice, bob, "tree"))
                #expect(try await Self.shell("find state/spool -mindepth 2", at: bob).isEmpty, "nothing of it is left")
            }
        }

        /// The ways to fill the receiver's disk, and the expected errors.
        enum Disk: String, CaseIterable, Sendable {
            case bytes, entries
        }

        /// Another process fills the receiver's disk while entries arrive. The sender gets the error, no entry remains, the session
        /// continues, and with space again the same directory arrives.
        @Test(arguments: Disk.allCases) func fullInTheMiddle(_ disk: Disk) async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.host("bob")
                let place = "\(laboratory.place)/disk"
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                let options = disk == .bytes ? "size=48m" : "nr_inodes=6000"
                try await laboratory.lab("host", "exec", "bob", "--", "mount", "-t", "tmpfs", "-o", options, "none", place)
                let alice = try await laboratory.daemon("alice")
                // The state is a directory on the small disk.
                let bob = try await laboratory.daemon(
                    "bob", arguments: ["--state-directory", "\(place)/state"],
                    environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept", "EARSHOT_RESOURCES_RESERVE": "0%"])
                try await alice.awaitPeer(bob)
                try await alice.expect(0, "invite", bob.id())
                try await bob.awaitConnected(to: alice)
                _ = try await Self.shell(Self.make, at: alice)
                // Leaves enough space for the daemon's own writes, even if data in transfer has filled the disk meanwhile.
                let fill =
                    disk == .bytes
                    ? "n=$(($(stat -f -c %a $1) * 4096 - 2000000)); head -c $n /dev/zero > $1/filler || truncate -s -2000000 $1/filler"
                    : "n=$(($(stat -f -c %d $1) - 60)); mkdir $1/filler; cd $1/filler; seq $n | xargs touch || ls | head -n 60 | xargs rm"
                try await LAN.slowly(laboratory) {
                    let sending = try alice.begin(["file", "send", "bob", "tree"])
                    try await eventually("some is there") { try await bob.files().contains { $0.transferred > 1 << 20 } }
                    // Filling may take any time: the sender waits meanwhile.
                    kill(try #require(alice.pid), SIGSTOP)
                    _ = try await Self.shell(fill, place, at: bob)
                    kill(try #require(alice.pid), SIGCONT)
                    let outcome = await sending.outcome()
                    #expect(outcome.status == 74, "\(outcome)")
                }
                for daemon in [alice, bob] {
                    let row = try #require(try await daemon.files().first)
                    #expect(row.state == .failed && row.error?.code == "no-space", "\(row)")
                }
                #expect(try await Self.shell("find $1/state/spool -mindepth 2", place, at: bob).isEmpty)
                try await alice.expect(0, "send", "bob", "still here")
                _ = try await Self.shell("rm -r $1/filler", place, at: bob)
                try await alice.expect(0, "file", "send", "bob", "tree")
                try await bob.expect(0, "file", "get", "tree")
                #expect(try await self.isEqual(alice, bob, "tree"))
                await bob.kill()
                try await laboratory.lab("host", "exec", "bob", "--", "umount", "-l", place)
            }
        }
    }
}
