import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotCore

/// Groups on disk: their records in wire format, and their messages.
@Suite struct StoreGroupTests {
    private static let time = Date(timeIntervalSince1970: 1_700_000_001)
    private static let key: [UInt8] = [0x30, 1]

    /// Creates a group with one record of each kind, which a store does not check.
    private static func group(_ number: UInt8 = 0) throws -> StoredGroup {
        let charter = try GroupCharter(
            nonce: [UInt8](repeating: number, count: 16), creatorKey: Self.key, creatorScheme: .ed25519, isClosed: true,
            createdAtMilliseconds: -1)
        var terms = GroupTerms(number: .max, name: try DisplayName("é\u{202E}"), isDissolved: false)
        terms.signature = [1]
        let seat = GroupSeat(
            publicKey: [0x30, 2], scheme: .rsaPSSSHA256, name: try DisplayName("bob"), number: 1, joinedAtMilliseconds: 253_402_300_799_999,
            voucher: PeerID(subjectPublicKeyInfo: Self.key), voucherNumber: 1, signature: [UInt8](repeating: 1, count: 1024),
            warrant: GroupSeat.Warrant(.creator, signature: [2]))
        let leave = GroupLeave(publicKey: [0x30, 3], scheme: .ed25519, number: 1, signature: [3])
        let removal = GroupRemoval(peer: peerID(7), number: .max, signature: [4])
        return StoredGroup(
            charter: charter, records: [.terms(terms), .seat(seat), .leave(leave), .removal(removal)], isOver: false)
    }

    /// Returns the group with its records in the store's order.
    private static func sorted(_ group: StoredGroup) -> StoredGroup {
        let records = group.records.sorted { $0.hash(in: group.id) < $1.hash(in: group.id) }
        return StoredGroup(charter: group.charter, records: records, isOver: group.isOver)
    }

    private func load(_ store: Store) async throws -> [StoredGroup] {
        try await store.load().groups.map(Self.sorted)
    }

    @Test func everyRecordComesBackAsItWas() async throws {
        let directory = try StateDirectory()
        let (first, second) = (Self.sorted(try Self.group()), Self.sorted(try Self.group(1)))
        for group in [first, second] { try await Store(directory: directory.path).apply([.putGroup(group)]) }
        let store = try Store(directory: directory.path)
        let loaded = try await self.load(store)
        #expect(Set(loaded) == [first, second])

        // Putting a group again keeps its existing records, and notes whether the group is over.
        let removed = try #require(first.records.first)
        try await store.apply([
            .putGroup(StoredGroup(charter: first.charter, records: [], isOver: true)),
            .removeGroupRecord(removed.hash(in: first.id), of: first.id),
        ])
        let now = try #require(try await self.load(store).first { $0.id == first.id })
        #expect(now.isOver && now.records == Array(first.records.dropFirst()))
        try await store.apply([.putGroupRecord(removed, of: first.id), .putGroupRecord(removed, of: first.id)])
        #expect(try await self.load(store).first { $0.id == first.id }?.records == first.records)

        // A group is deleted with its records, and without those of others.
        try await store.apply([.removeGroup(first.id)])
        #expect(try await self.load(store) == [second])
        try await store.apply([.putGroup(StoredGroup(charter: first.charter, records: [], isOver: false))])
        #expect(try await self.load(store).first { $0.id == first.id }?.records == [])
    }

    /// A transaction is atomic: if it has a record of an unknown group, nothing of it is written.
    @Test func aRecordOfNoGroupIsRefused() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        let group = try Self.group()
        await #expect(throws: EarshotError.self) {
            try await store.apply([.putGroup(try Self.group(1)), .putGroupRecord(group.records[0], of: group.id)])
        }
        #expect(try await store.load().groups.isEmpty)
    }

    @Test(arguments: [
        "UPDATE group_records SET record = x'00'", "UPDATE group_records SET record = x''", "UPDATE groups SET charter = x'05'",
        "UPDATE groups SET charter = (SELECT record FROM group_records LIMIT 1)",
    ])
    func whatCannotBeReadIsSaidToBeDamaged(_ damage: String) async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        try await store.apply([.putGroup(try Self.group())])
        try await store.sql(damage)
        let error = await #expect(throws: EarshotError.self) { try await store.load() }
        #expect(error?.message.contains("damaged") == true, "\(error?.message ?? "")")
    }

    // MARK: Messages

    private func message(_ number: UInt64, in group: GroupLabel?, from sender: UInt8 = 1, isResumed: Bool = false, size: Int = 8)
        -> InboxMessage
    {
        InboxMessage(
            id: MessageID(high: 0, low: number), senderID: peerID(sender), senderName: "bob", contentType: "text/plain",
            body: ByteBuffer(repeating: 1, count: size), sent: WallTime(Self.time), isResumed: isResumed, group: group)
    }

    @Test func aMessageSaysInWhichGroupItWasSaid() async throws {
        let directory = try StateDirectory()
        let label = GroupLabel(id: try Self.group().id, name: "team\u{202E}")
        do {
            let store = try Store(directory: directory.path)
            let outcomes = try await store.deliver([self.message(1, in: label), self.message(2, in: nil)], receivedAt: Self.time)
            #expect(outcomes.map(\.isStored) == [true, true])
        }
        // The group need not exist (any more).
        let store = try Store(directory: directory.path)
        #expect(try await store.messages(state: nil, from: nil, limit: 9).map(\.group) == [label, nil])
        let page = try await store.messagePage(state: .unread, from: peerID(1), in: label.id, limit: 9)
        #expect(page.messages.map(\.id.low) == [1])
        #expect(try await store.messagePage(state: nil, from: nil, in: try Self.group(1).id, limit: 9).messages.isEmpty)
        #expect(try await store.deliver([self.message(1, in: nil)], receivedAt: Self.time) == [.duplicate], "its sender's id names it")
    }

    /// A receipt for a group's message is sent, even if the session of the two has ended before.
    @Test func whatWasReadInAGroupOutlastsTheSession() async throws {
        let store = try Store(directory: nil)
        let label = GroupLabel(id: try Self.group().id, name: "team")
        let messages = [self.message(1, in: label), self.message(2, in: nil)]
        _ = try await store.deliver(messages, receivedAt: Self.time)
        for message in messages { _ = try await store.markRead(id: message.id, from: nil, at: Self.time, receipt: true) }
        try await store.apply([.removeSession(with: peerID(1))])
        #expect(try await store.receipts(for: peerID(1)) == [messages[0].id])
        #expect(await store.receipts == 1)
    }

    /// After a refused message, later messages of the same conversation are refused, and no other conversation is affected.
    @Test func eachConversationHasItsOwnOrder() async throws {
        let directory = try StateDirectory()
        let label = GroupLabel(id: try Self.group().id, name: "team")
        let limit = UInt64(EarshotLimits.messageOverhead) + 80
        let store = try Store(directory: directory.path, inbox: InboxLimits(count: 100, bytes: limit))
        let outcomes = try await store.deliver(
            [
                self.message(1, in: label, size: 4096), self.message(2, in: label), self.message(3, in: nil), self.message(4, in: label),
            ], receivedAt: Self.time)
        #expect(outcomes.map(\.isStored) == [false, false, true, false])
        #expect(outcomes[0] == .refused(.inboxFull) && outcomes[1] == .refused(.inboxFull))
        _ = try await store.markRead(id: self.message(3, in: nil).id, from: nil, at: Self.time)
        #expect(try await store.deliver([self.message(4, in: label)], receivedAt: Self.time) == [.refused(.inboxFull)])
        let resumed = try await store.deliver([self.message(4, in: label, isResumed: true)], receivedAt: Self.time)
        #expect(resumed.map(\.isStored) == [true])
    }

    @Test func aResourceSaysToWhichGroupItWasSent() async throws {
        let directory = try StateDirectory()
        let label = GroupLabel(id: try Self.group().id, name: "team\u{202E}")
        let rows = [(label, ShareID(high: .max, low: 1)), (label, nil), (nil, nil)].enumerated().map { index, place in
            Resource(
                id: ResourceID(high: 0, low: UInt64(index)), direction: .outgoing, peerID: peerID(1), peerName: "bob", group: place.0,
                shareID: place.1, name: "a", kind: .file, size: 1, state: .offered, created: WallTime(Self.time))
        }
        try await Store(directory: directory.path).apply(rows.map { .putResource($0) })
        // Also after a change.
        try await Store(directory: directory.path).apply([.putResource(rows[0])])
        #expect(try await Store(directory: directory.path).load().resources == rows)
    }

    @Test func whatWaitsForAGroupIsKnownForThat() async throws {
        let directory = try StateDirectory()
        let group = try Self.group().id
        let waiting = QueuedMessage(
            id: MessageID(high: 0, low: 1), contentType: "text/plain", body: ByteBuffer(string: "x"), fingerprint: [1],
            sent: WallTime(Self.time), deadline: WallTime(Self.time + 60),
            recipients: [2, 3].map { Message.Recipient(peerID: peerID($0), status: .queued) }, group: group)
        try await Store(directory: directory.path).change([.add(waiting)])
        let rows = try await Store(directory: directory.path).outbox()
        #expect(rows.map(\.group) == [group])
        #expect(rows.first?.recipients.map(\.peerID) == waiting.recipients.map(\.peerID))
    }
}
