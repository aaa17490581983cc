import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The content of files that do not report their size, or differ for the daemon.
    @Suite struct Sources {
        /// The kernel generates the content of these files, which report no size.
        @Test func filesOfTheKernel() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await alice.expect(0, "file", "send", "bob", "/proc/version")
                try await bob.expect(0, "file", "get", "version")
                let version = try String(contentsOfFile: "/proc/version", encoding: .utf8)
                #expect(try String(contentsOfFile: "\(bob.place)/version", encoding: .utf8) == version)
                let refused = try await alice.earshot("file", "send", "bob", "/proc/sys/kernel/random")
                #expect(refused.status == 65 && refused.errors.contains("of another size than it reports"), "\(refused)")
            }
        }

        /// In a container, for example, the same path may lead the daemon to another file, or to none.
        @Test func aCommandThatSeesOtherMounts() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                for (place, text) in [("outside", "the daemon's"), ("inside", "the command's")] {
                    try FileManager.default.createDirectory(atPath: "\(alice.place)/\(place)", withIntermediateDirectories: true)
                    try Data(text.utf8).write(to: URL(fileURLWithPath: "\(alice.place)/\(place)/file"))
                }
                try Data("only here".utf8).write(to: URL(fileURLWithPath: "\(alice.place)/inside/other"))
                let script = "mount --bind inside outside && exec '\(Laboratory.binaries)/earshot' file send bob outside/file outside/other"
                let sent = try await Running(
                    [Laboratory.script, "host", "exec", "alice", "--", "unshare", "-m", "/bin/sh", "-c", script],
                    environment: ["EARSHOT_SOCKET": alice.socket], directory: alice.place
                ).outcome()
                #expect(sent.status == 0, "\(sent)")
                try await bob.expect(0, "file", "get")
                #expect(try String(contentsOfFile: "\(bob.place)/file", encoding: .utf8) == "the command's")
                #expect(try String(contentsOfFile: "\(bob.place)/other", encoding: .utf8) == "only here")
            }
        }
    }
}
