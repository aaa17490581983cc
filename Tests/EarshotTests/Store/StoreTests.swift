import CSQLite
@testable import Earshot
@testable import EarshotCore
import EarshotWire
import Foundation
import Testing

@Suite struct StoreTests {
    private static let time = Date(timeIntervalSince1970: 1_700_000_000.5)

    private static func resource(_ number: UInt64, size: UInt64 = 5) -> Resource {
        Resource(
            id: ResourceID(high: 0, low: number), direction: .incoming, peerID: peerID(1), peerName: "bob\u{202E}", name: "a\0b",
            kind: .file,
            size: size, transferred: size, state: .completed, digest: "xxh3:00", path: nil, error: .cancelled, errorMessage: "why",
            createdAt: Self.time, completedAt: Self.time, inSpool: true)
    }

    @Test func whatIsKeptComesBackAsItWas() async throws {
        let directory = try StateDirectory()
        let peer = StoredPeer(
            id: peerID(1), name: "é\u{202E}\0", alias: try DisplayName("é"), trust: .blocked, isTLSPinned: true, firstSeen: Self.time,
            lastSeen: Self.time + 1)
        let other = StoredPeer(
            id: peerID(2), name: "", trust: .trusted, isTLSPinned: false, isProven: false, firstSeen: Self.time, lastSeen: Self.time)
        let session = StoredSession(id: SessionID(high: 1, low: .max), members: [peerID(9), peerID(1)], createdAt: Self.time)
        let largest = Self.resource(2, size: WireLimits.resourceSize)
        do {
            let store = try Store(directory: directory.path)
            #expect(try await store.load() == StoredState(peers: [], sessions: [], resources: [], transfers: []))
            try await store.apply([
                .putPeer(peer), .putPeer(other), .putSession(session), .putResource(Self.resource(1)), .putResource(largest),
            ])
            try await store.apply([])
        }
        let store = try Store(directory: directory.path)
        let state = try await store.load()
        #expect(state.peers.sorted { $0.id < $1.id } == [peer, other].sorted { $0.id < $1.id })
        #expect(state.peers.first { $0.id == peer.id }?.name.unicodeScalars.count == 3)
        #expect(state.sessions == [session])
        #expect(state.resources == [Self.resource(1), largest])

        var changed = session
        changed.members = [peerID(9), peerID(3)]
        try await store.apply([
            .removeSession(with: peer.id), .putSession(changed), .removePeer(peer.id), .removeResource(largest.id),
            .removePeer(peerID(200)), .removeSession(with: peerID(5)),
        ])
        let after = try await store.load()
        #expect(after == StoredState(peers: [other], sessions: [changed], resources: [Self.resource(1)], transfers: []))
        try await store.apply([.removeSession(with: peerID(3))])
        #expect(try await store.load().sessions == [])
    }

    /// An earlier release knows no aliases: it keeps those of peers that it writes again, and leaves those of peers that it removes.
    @Test func aliasesOutliveAnEarlierRelease() async throws {
        let directory = try StateDirectory()
        var peers = try (UInt8(1)...2).map { number in
            StoredPeer(
                id: peerID(number), name: "peer", alias: try DisplayName("alias \(number)"), trust: .trusted, isTLSPinned: true,
                firstSeen: Self.time, lastSeen: Self.time)
        }
        do { try await Store(directory: directory.path).apply(peers.map { .putPeer($0) }) }
        do {
            let database = try SQLiteDatabase(path: "\(directory.path)/\(Store.fileName)")
            try database.execute("DELETE FROM peers WHERE id = x'\(peers[0].id.bytes.map { String(format: "%02x", $0) }.joined())'")
            try database.execute("UPDATE peers SET name = 'renamed'")
        }
        let store = try Store(directory: directory.path)
        peers[1].name = "renamed"
        #expect(try await store.load().peers == [peers[1]])
        peers[0].alias = nil
        try await store.apply([.putPeer(peers[0])])
        try await store.apply([.removePeer(peers[1].id)])
        peers[1].alias = nil
        try await store.apply([.putPeer(peers[1])])
        #expect(try await store.load().peers == peers)
    }

    @Test func filesArePrivate() async throws {
        let directory = try StateDirectory()
        let path = "\(directory.path)/new/state"
        let store = try Store(directory: path)
        try await store.apply([.putResource(Self.resource(1))])
        #expect(try directory.mode("new/state") == 0o700)
        for name in try directory.names("new/state") { #expect(try directory.mode("new/state/\(name)") == 0o600, "\(name)") }
        #expect(try directory.names("new/state").contains("earshot.db-wal"))
    }

    @Test func changesAreCommittedTogetherOrNotAtAll() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        // A session may contain the same member twice. A second row with the same place violates a constraint, but cannot be created from
        // here, so a trigger causes the failure.
        try await store.sql("CREATE TRIGGER refuse BEFORE INSERT ON resources BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let peer = StoredPeer(id: peerID(1), name: "a", trust: .trusted, isTLSPinned: true, firstSeen: Self.time, lastSeen: Self.time)
        let error = await #expect(throws: EarshotError.self) { try await store.apply([.putPeer(peer), .putResource(Self.resource(1))]) }
        #expect(error?.code == .storage)
        #expect(try await store.load().peers == [])
        try await store.apply([.putPeer(peer)])
        #expect(try await store.load().peers == [peer])
    }

    @Test func changesThatFailLeaveTheReceiptsCountedAsTheyAre() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        _ = try await store.deliver([inboxMessage(1), inboxMessage(2)], receivedAt: Self.time)
        let keys = (UInt64(1)...2).map { Store.MessageKey(id: inboxMessage($0).id, sender: peerID(1)) }
        _ = try await store.markRead(keys, receiptsFor: [peerID(1)], at: Self.time)
        try await store.sql("CREATE TRIGGER refuse BEFORE INSERT ON resources BEGIN SELECT RAISE(ABORT, 'refused'); END")
        await #expect(throws: EarshotError.self) {
            try await store.apply([.removeSession(with: peerID(1)), .putResource(Self.resource(1))])
        }
        #expect(try await store.integer("SELECT count(*) FROM receipts") == 2)
        #expect(await store.receipts == 2)
        try await store.apply([.removeSession(with: peerID(1))])
        #expect(try await store.integer("SELECT count(*) FROM receipts") == 0)
        #expect(await store.receipts == 0)
    }

    /// A start that is killed in between must not look like one that has found everything.
    @Test func whatBelongsToANewDatabaseComesBeforeIt() throws {
        let directory = try StateDirectory()
        let error = #expect(throws: EarshotError.self) {
            try Store(directory: directory.path) { () throws(EarshotError) in throw EarshotError(.noSpace, "not now") }
        }
        #expect(error?.code == .noSpace && error?.message == "not now")
        let times = Box(0)
        for _ in 0..<2 { _ = try Store(directory: directory.path) { times.withLock { $0 += 1 } } }
        #expect(times.value == 1)
    }

    @Test(arguments: ["this is no database, but long enough to be taken for one: " + String(repeating: "x", count: 8192), "x"])
    func aFileThatIsNoDatabaseIsRefusedAndKept(content: String) throws {
        let directory = try StateDirectory()
        let path = "\(directory.path)/earshot.db"
        try content.write(toFile: path, atomically: false, encoding: .utf8)
        let error = #expect(throws: EarshotError.self) { try Store(directory: directory.path) }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("is damaged") == true)
        #expect(error?.message.contains("move earshot.db, earshot.db-wal and earshot.db-shm away together") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == content)
    }

    @Test func aDamagedDatabaseIsRefusedAndKept() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            _ = try await store.deliver((0..<500).map { inboxMessage($0, size: 200) }, receivedAt: Self.time)
            try await store.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        let copy = try directory.copied()
        let path = "\(copy.path)/earshot.db"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try #require(bytes.count > 60_000)
        bytes.replaceSubrange(40_000..<56_000, with: Data(repeating: 0xA5, count: 16_000))
        try bytes.write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: EarshotError.self) { try Store(directory: copy.path) }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("is damaged") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
    }

    /// Before the schema noted the peers with a proven key, a decision could also concern an unproven id.
    @Test func whoHadProvenItsKeyIsInferredOnce() async throws {
        let directory = try StateDirectory()
        func peer(_ number: UInt8, _ trust: Trust, tls: Bool) -> StoredPeer {
            StoredPeer(id: peerID(number), name: "a", trust: trust, isTLSPinned: tls, firstSeen: Self.time, lastSeen: Self.time)
        }
        let inSession = peer(3, .trusted, tls: false)
        let unproven = Set([peerID(1), peerID(5)])
        do {
            let store = try Store(directory: directory.path)
            try await store.apply(
                [
                    peer(1, .trusted, tls: false), peer(2, .trusted, tls: true), inSession, peer(4, .unknown, tls: false),
                    peer(5, .blocked, tls: false),
                ].map { .putPeer($0) } + [
                    .putSession(StoredSession(id: .random(), members: [peerID(9), inSession.id], createdAt: Self.time))
                ])
            try await store.sql(StoreSchema.undoingSessionsByPeer + "ALTER TABLE peers DROP COLUMN proven; PRAGMA user_version = 5")
        }
        let peers = try await Store(directory: directory.path).load().peers
        #expect(peers.count == 5)
        #expect(Set(peers.filter { !$0.isProven }.map(\.id)) == unproven)
    }

    @Test func aLaterLayoutIsRefused() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            try await store.sql("PRAGMA user_version = \(StoreSchema.migrations.count + 1)")
        }
        let error = #expect(throws: EarshotError.self) { try Store(directory: directory.path) }
        #expect(error?.code == .versionUnsupported && error?.message.contains("later release") == true)
    }

    @Test func anotherProgramsDatabaseIsRefused() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            try await store.sql("PRAGMA application_id = 7")
        }
        let error = #expect(throws: EarshotError.self) { try Store(directory: directory.path) }
        #expect(error?.message.contains("another program") == true)
    }

    @Test func aLinkPlantedForTheDatabaseIsNotFollowed() throws {
        let directory = try StateDirectory()
        let outside = try StateDirectory()
        try FileManager.default.createSymbolicLink(atPath: "\(directory.path)/earshot.db", withDestinationPath: "\(outside.path)/x")
        #expect(throws: EarshotError.self) { try Store(directory: directory.path) }
        #expect(try outside.names("") == [])
    }

    @Test func oneStateDirectoryOneProcess() throws {
        let directory = try StateDirectory()
        do {
            let lock = try StateLock(directory: directory.path)
            let error = #expect(throws: EarshotError.self) { try StateLock(directory: directory.path) }
            #expect(error?.code == .conflict)
            #expect(error?.message.contains("process \(getpid()) ") == true)
            #expect(try directory.mode("lock") == 0o600)
            withExtendedLifetime(lock) {}
        }
        // The content of the file is irrelevant if no process holds the lock.
        try "99999999999999999999\n".write(toFile: "\(directory.path)/lock", atomically: false, encoding: .utf8)
        let again = try StateLock(directory: directory.path)
        #expect(try String(contentsOfFile: "\(directory.path)/lock", encoding: .utf8) == "\(getpid())\n")
        withExtendedLifetime(again) {}
    }

    /// The start of another node would treat this one's running transfers as left over.
    @Test func oneStateDirectoryOneNode() async throws {
        let state = try StateDirectory()
        let bob = try await TestNode("bob", in: state)
        let error = await #expect(throws: EarshotError.self) { _ = try await TestNode("bob", in: state) }
        #expect(error?.code == .conflict)
        await bob.stop()
        let again = try await TestNode("bob", in: state)
        #expect(again.node.id == bob.node.id)
        await again.stop()
    }

    @Test func theStoresThreadIsNotThePools() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        #expect(await store.threadName() == "earshot-store")
    }
}

extension Store {
    func sql(_ text: String) throws { try self.database.execute(text) }

    func integer(_ text: String) throws -> Int64 { try self.database.integer(text) }

    func threadName() -> String {
        (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines) ?? ""
    }
}
