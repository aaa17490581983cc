import Foundation
import Testing

@testable import Earshot

/// What was committed last is beside the database, and is not lost without a word.
@Suite(.timeLimit(.minutes(1))) struct StoreJournalTests {
    private static let time = Date(timeIntervalSince1970: 1_800_000_000)

    /// As a daemon that was killed leaves it: thirty messages, all of them in the journal.
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

    /// Unfinished business at its end is what any crash may leave.
    @Test(arguments: [0, 31, 32]) func whatEndsEarlyIsNoDamage(_ size: Int) async throws {
        let directory = try await self.killed()
        let path = "\(directory.path)/earshot.db-wal"
        try Data(contentsOf: URL(fileURLWithPath: path)).prefix(size).write(to: URL(fileURLWithPath: path))
        #expect(try await self.count(directory) == 0)
    }
}
