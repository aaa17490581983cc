import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// A copy of the state that is made while a node uses it, and then started.
@Suite(.timeLimit(.minutes(1))) struct StateBackupTests {
    @Test func aNodeGoesOnFromACopyThatWasMadeWhileItRan() async throws {
        let (alice, bob) = try await pair()
        for number in 1...20 { _ = try await bob.send("\(number)", to: alice) }
        let copy = try StateDirectory()
        let place = "\(copy.path)/backup"
        // While messages arrive.
        let sending = Task { for number in 21...60 { _ = try await bob.send("\(number)", to: alice) } }
        try StateBackup.write(of: alice.directory, to: place)
        try await sending.value
        #expect(try await alice.inbox().count == 60)
        let (id, sessions) = (alice.node.id, await alice.node.sessions().map(\.id))
        await alice.stop()
        // Like a restore: the copy replaces the old directory.
        let restored = try StateDirectory()
        for name in try FileManager.default.contentsOfDirectory(atPath: place) {
            try FileManager.default.copyItem(atPath: "\(place)/\(name)", toPath: "\(restored.path)/\(name)")
        }
        let again = try await TestNode("alice", in: restored)
        #expect(again.node.id == id)
        #expect(await again.node.sessions().map(\.id) == sessions)
        let inbox = try await again.inbox()
        #expect(inbox.count >= 20 && inbox == (1...inbox.count).map { "\($0)" }, "whole, up to one moment")
        // The session is the same on both sides, and works.
        again.sees(bob)
        bob.sees(again)
        _ = try await bob.send("after", to: again)
        #expect(try await again.inbox().last == "after")
    }

    @Test func onlyItsOwnerReadsIt() async throws {
        let alice = try await TestNode("alice")
        let copy = try StateDirectory()
        let place = "\(copy.path)/backup"
        try StateBackup.write(of: alice.directory, to: place)
        #expect(try copy.mode("backup") == 0o700)
        #expect(try copy.names("backup") == ["earshot.db", "identity.pem"])
        for name in ["earshot.db", "identity.pem"] { #expect(try copy.mode("backup/\(name)") == 0o600) }
        // Nothing is overwritten, and nothing is copied from an empty directory.
        #expect(throws: EarshotError.self) { try StateBackup.write(of: alice.directory, to: place) }
        #expect(try copy.names("backup").count == 2)
        let empty = try StateDirectory()
        #expect(throws: EarshotError.self) { try StateBackup.write(of: empty.path, to: "\(copy.path)/other") }
        #expect(try empty.names("") == [])
        #expect(throws: EarshotError.self) { try StateBackup.write(of: "\(empty.path)/none", to: "\(copy.path)/other") }
    }

    @Test func aDamagedStoreIsNoBackup() async throws {
        let alice = try await TestNode("alice")
        await alice.stop()
        let path = "\(alice.directory)/earshot.db"
        // Pages in the log would be read from there.
        for suffix in ["-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.removeItem(atPath: path + suffix)
        }
        try Data("SQLite format 3\u{0}".utf8 + [UInt8](repeating: 7, count: 8192)).write(to: URL(fileURLWithPath: path))
        let copy = try StateDirectory()
        #expect(throws: EarshotError.self) { try StateBackup.write(of: alice.directory, to: "\(copy.path)/backup") }
        #expect(try copy.names("backup") == [])
    }
}
