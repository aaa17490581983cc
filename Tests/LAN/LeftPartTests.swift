import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The files that a killed daemon leaves in the directory of received files.
    @Suite struct LeftParts {
        /// Kills the daemon as soon as a partial file exists.
        private static let killer = """
            while :; do for part in "$1"/.earshot-*.part; do if [[ -e $part ]]; then kill -KILL "$2"; exit; fi; done; done
            """

        @Test func killedWhileCopyingADirectory() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.host("bob")
                let disk = "\(laboratory.place)/disk"
                try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
                try await laboratory.lab("host", "exec", "bob", "--", "mount", "-t", "tmpfs", "-o", "size=128m", "none", disk)
                let onBob = { (script: String) in
                    try await Running([Laboratory.script, "host", "exec", "bob", "--", "/bin/sh", "-c", script]).outcome().output
                }
                let alice = try await laboratory.daemon("alice")
                let bob = try await laboratory.daemon(
                    "bob", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept", "EARSHOT_RESOURCES_DIRECTORY": disk])
                try await alice.awaitPeer(bob)
                try await alice.expect(0, "invite", bob.id())
                try await bob.awaitConnected(to: alice)
                let make = "mkdir tree; cd tree; seq 60000 | split -l 20 -a 4 - f"
                try #require(try await Running(["/bin/sh", "-c", make], directory: alice.place).outcome().status == 0)
                // The disk may be faster than the kill, so the test repeats until the daemon is caught.
                var left = ""
                var sent = 0
                for _ in 0..<8 where left.isEmpty {
                    sent += 1
                    let killer = try laboratory.start(
                        on: "bob", ["/usr/bin/timeout", "60", "/bin/bash", "-c", Self.killer, "bash", disk, "\(try #require(bob.pid))"])
                    let sending = try alice.begin(["file", "send", "bob", "tree"])
                    _ = await killer.status()
                    await bob.kill()
                    left = try await onBob("cd \(disk); ls -d .earshot-*.part 2>/dev/null")
                    // A user's own file, which only looks like a partial file.
                    let own = ".earshot-0123456789abcdef.part"
                    _ = try await onBob("touch \(disk)/\(own)")
                    try await bob.start()
                    // A partial directory is renamed when it is complete. Once all directories are there, no partial ones remain.
                    let (all, count) = (sent, "ls -d tree* 2>/dev/null | wc -l")
                    try await eventually("it was put in place after all") { try await onBob("cd \(disk); \(count)") == "\(all)\n" }
                    try await eventually("only somebody's own is there") { try await onBob("cd \(disk); ls -d .earshot-*") == "\(own)\n" }
                    _ = try await onBob("rm \(disk)/\(own)")
                    #expect(await sending.outcome().status == 0)
                }
                #expect(!left.isEmpty, "it was never killed in the middle")
                try await eventually("no note is left") { try await onBob("ls \(bob.place)/state/spool/publishing").isEmpty }
                #expect(try await onBob("cd \(disk); find . -maxdepth 1 -mindepth 1 ! -name 'tree*'").isEmpty)
                await bob.kill()
                _ = try await onBob("umount -l \(disk)")
            }
        }
    }
}
