import Foundation
import Testing

@testable import Earshot

/// The most recent commits are in the log beside the database, and are not lost silently.
@Suite(.timeLimit(.minutes(1))) struct StoreJournalTests {
    private static let time = Date(timeIntervalSince1970: 1_800_000_000)

    /// Returns the state of a killed daemon: thirty messages, all of them in the log.
    private func killed() async throws -> StateDirectory {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        _ = try await store.deliver((0..<30).map { inboxMessage($0, size: 200) }, receivedAt: Self.time)
        return try directory.copied()
    }

    private func count(_ directory: StateDirectory) async throws -> Int64 {
        try await Store(directory: directory.path).integer("SELECT count(*) FROM messages")
    }

    @Test func whatAKilledDaemonHadCommittedIsThere() async throws {
        #expect(try await self.count(try await self.killed()) == 30)
    }

    @Test func aDamagedHeaderIsRefusedAndKept() async throws {
        let directory = try await self.killed()
        let path = "\(directory.path)/earshot.db-wal"
        let sound = try Data(contentsOf: URL(fileURLWithPath: path))
        for index in 0..<WriteAheadLog.headerSize {
            var bytes = sound
            bytes[index] ^= 0xFF
            try bytes.write(to: URL(fileURLWithPath: path))
            let error = #expect(throws: EarshotError.self) { try Store(directory: directory.path) }
            #expect(error?.code == .storage)
            #expect(error?.message.hasPrefix("\(path) is damaged (") == true, "\(index): \(error?.message ?? "")")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
        }
        try sound.write(to: URL(fileURLWithPath: path))
        #expect(try await self.count(directory) == 30)
    }

    /// An incomplete end of the log may be left by any crash.
    @Test(arguments: [0, 31, 32]) func whatEndsEarlyIsNoDamage(_ size: Int) async throws {
        let directory = try await self.killed()
        let path = "\(directory.path)/earshot.db-wal"
        try Data(contentsOf: URL(fileURLWithPath: path)).prefix(size).write(to: URL(fileURLWithPath: path))
        #expect(try await self.count(directory) == 0)
    }
}
