import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Times are within the years 1 to 9999, whatever a peer, a row from an older version or this machine's clock reports.
@Suite(.timeLimit(.minutes(1))) struct BoundedTimeTests {
    /// Given times and their bounded values, in milliseconds since 1970.
    static let times: [(given: Int64, taken: Int64)] = [
        (.min, -62_135_596_800_000), (-62_135_596_800_001, -62_135_596_800_000), (-62_135_596_800_000, -62_135_596_800_000),
        (-62_135_596_799_999, -62_135_596_799_999), (-1, -1), (0, 0), (1_700_000_000_123, 1_700_000_000_123),
        (253_402_300_799_999, 253_402_300_799_999), (253_402_300_800_000, 253_402_300_799_999), (.max, 253_402_300_799_999),
    ]

    private func milliseconds(_ date: Date) -> Int64? { Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded()) }

    @Test func theNearestTimeIsTaken() {
        for (given, taken) in Self.times {
            let date = Date(boundedMilliseconds: given)
            #expect(self.milliseconds(date) == taken && date.boundedMilliseconds == taken, "\(given)")
        }
        let seconds: [(Double, Int64)] = [
            (.infinity, 253_402_300_799_999), (-.infinity, -62_135_596_800_000), (1e300, 253_402_300_799_999),
            (-1e300, -62_135_596_800_000), (.nan, 0), (-0.0006, -1),
        ]
        for (given, taken) in seconds { #expect(Date(timeIntervalSince1970: given).boundedMilliseconds == taken, "\(given)") }
    }

    /// In every form of a message: in the inbox, and for live readers, alone or in a run of unreliable messages.
    @Test func aMessagesTimeIsBoundedWhenItIsTaken() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let peer = try await RawPeer(to: bob)
        try await peer.prove()
        let session = try await peer.join()
        let events = bob.node.events.subscribe(since: nil)
        let modes: [MessageFrame.Mode] = [.reliable, .resumed, .unreliable]
        for (number, time) in Self.times.enumerated() {
            for (place, mode) in modes.enumerated() {
                let sequence = UInt64(number * modes.count + place + 1)
                try await peer.send(
                    .message(
                        MessageFrame(
                            session: session, id: MessageID(high: 1, low: sequence), mode: mode, sequence: sequence,
                            sentAtMilliseconds: time.given, contentType: "text/plain", body: ByteBuffer(string: "\(time.taken)"))))
            }
        }
        var left = Self.times.count * modes.count
        for await event in events {
            guard case .messageReceived(let message) = event.kind else { continue }
            #expect(self.milliseconds(message.sent.date).map { "\($0)" } == String(buffer: message.body), "\(message.mode)")
            left -= 1
            if left == 0 { break }
        }
        let kept = try await bob.node.messages(state: nil, from: nil, limit: 1000)
        #expect(kept.count == Self.times.count * 2)
        for message in kept { #expect(self.milliseconds(message.sentAt).map { "\($0)" } == String(buffer: message.body)) }
        await peer.close()
        await bob.stop()
    }

    /// Rows with unbounded times from an older version, in every column with a time.
    @Test(arguments: [Int64.min, -62_167_219_200_001, -1, 253_402_300_800_000, .max])
    func rowsAreBoundedWhenTheyAreLoaded(time: Int64) async throws {
        let directory = try StateDirectory()
        let (id, session) = (peerID(1), SessionID(high: 1, low: 1))
        let date = Date(timeIntervalSince1970: 1)
        do {
            let store = try Store(directory: directory.path)
            _ = try await store.deliver([inboxMessage(1)], receivedAt: date)
            try await store.apply([
                .putPeer(
                    StoredPeer(
                        id: id, name: "bob", trust: .trusted, isTLSPinned: false, trustedUntil: date, firstSeen: date, lastSeen: date)),
                .putSession(StoredSession(id: session, members: [id], createdAt: date)),
                .putResource(
                    Resource(
                        id: .random(), direction: .incoming, peerID: id, peerName: "bob", name: "x", kind: .file, size: .max,
                        transferred: .max, state: .completed, digest: nil, path: nil, error: nil, errorMessage: nil, createdAt: date,
                        completedAt: date, inSpool: false)),
                .putEndedTransfer(EndedTransfer(id: .random(), peerID: id, error: nil, message: "", endedAt: WallTime(date))),
            ])
            try await store.change([
                .add(
                    QueuedMessage(
                        id: MessageID(high: 1, low: 1), contentType: "a/b", body: ByteBuffer(), fingerprint: [], sent: WallTime(date),
                        deadline: WallTime(date), recipients: []))
            ])
        }
        let columns = [
            "messages": ["sent_at", "received_at"], "peers": ["trusted_until", "first_seen", "last_seen"], "sessions": ["created_at"],
            "resources": ["created_at", "completed_at"], "ended_transfers": ["ended_at"], "outbox": ["sent_at", "deadline"],
        ]
        do {
            let database = try SQLiteDatabase(path: "\(directory.path)/\(Store.fileName)")
            for (table, names) in columns {
                for name in names { try database.execute("UPDATE \(table) SET \(name) = \(time)") }
            }
        }
        let store = try Store(directory: directory.path)
        let state = try await store.load()
        let (message, queued) = (try await store.messages(state: nil, from: nil, limit: 1).first, try await store.outbox().first)
        let (peer, resource) = (state.peers.first, state.resources.first)
        let dates = [
            message?.sentAt, message?.receivedAt, peer?.trustedUntil?.date, peer?.firstSeen.date, peer?.lastSeen.date,
            state.sessions.first?.createdAt.date,
            resource?.createdAt, resource?.completedAt, state.endedTransfers.first?.endedAt.date, queued?.sent.date, queued?.deadline.date,
        ]
        let bounds = WireLimits.sentAtMilliseconds
        let taken = min(max(time, bounds.lowerBound), bounds.upperBound)
        #expect(dates.map { $0.flatMap(self.milliseconds) } == Array(repeating: taken, count: columns.values.reduce(0) { $0 + $1.count }))
        #expect(resource?.size == UInt64(Int64.max))
    }
}
