import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotCore

/// The store keeps the message to which a message replies.
@Suite struct StoreReplyTests {
    private static let time = Date(timeIntervalSince1970: 1_700_000_000)
    private static let question = MessageID(high: 7, low: 8)

    private static func reply(_ number: UInt64, from sender: UInt8 = 1) -> InboxMessage {
        InboxMessage(
            id: MessageID(high: 0, low: number), senderID: peerID(sender), senderName: "bob", contentType: "text/plain",
            body: ByteBuffer(string: "x"), sentAt: Self.time, inReplyTo: Self.question)
    }

    private static func queued(_ number: UInt64, inReplyTo: MessageID? = question) -> QueuedMessage {
        QueuedMessage(
            id: MessageID(high: 0, low: number), contentType: "text/plain", body: ByteBuffer(string: "x"), fingerprint: [1],
            sent: WallTime(Self.time), deadline: WallTime(Self.time + 60),
            recipients: [Message.Recipient(peerID: peerID(1), status: .queued)], inReplyTo: inReplyTo)
    }

    private static func rows(_ directory: StateDirectory) throws -> [Int64] {
        let database = try SQLiteDatabase(path: "\(directory.path)/\(Store.fileName)")
        return [try database.integer("SELECT count(*) FROM replies"), try database.integer("SELECT count(*) FROM outbox_replies")]
    }

    @Test func aReplyComesBackAsItWasDelivered() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            let outcomes = try await store.deliver([Self.reply(1), inboxMessage(2), Self.reply(1)], receivedAt: Self.time)
            guard case .stored(let stored) = outcomes[0] else {
                Issue.record("not stored: \(outcomes[0])")
                return
            }
            #expect(stored.inReplyTo == Self.question && outcomes[2] == .duplicate)
            try await store.change([.add(Self.queued(3)), .add(Self.queued(4)), .add(Self.queued(4, inReplyTo: nil))])
        }
        let store = try Store(directory: directory.path)
        #expect(try await store.messages(state: nil, from: nil, limit: 9).map(\.inReplyTo) == [Self.question, nil])
        #expect(try await store.messages(id: Self.reply(1).id, from: peerID(1)).map(\.inReplyTo) == [Self.question])
        #expect(try await store.markRead(id: Self.reply(1).id, from: nil, at: Self.time)?.inReplyTo == Self.question)
        #expect(try await store.outbox().map(\.inReplyTo) == [Self.question, nil], "the last row of an id counts")
    }

    /// Two senders may use one id.
    @Test func aReplyBelongsToItsSender() async throws {
        let store = try Store(directory: nil)
        let other = InboxMessage(
            id: Self.reply(1).id, senderID: peerID(2), senderName: "", contentType: "a", body: ByteBuffer(), sentAt: Self.time)
        _ = try await store.deliver([Self.reply(1), other], receivedAt: Self.time)
        #expect(try await store.messages(id: other.id, from: nil).map(\.inReplyTo) == [Self.question, nil])
    }

    @Test func nothingIsLeftOfADeletedReply() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        _ = try await store.deliver([Self.reply(1)], receivedAt: Self.time)
        try await store.change([.add(Self.queued(2))])
        #expect(try Self.rows(directory) == [1, 1])
        _ = try await store.markRead(id: Self.reply(1).id, from: nil, at: Self.time)
        #expect(try await store.prune(readBefore: Self.time + 1, now: Self.time + 1) == 1)
        try await store.change([.remove(Self.queued(2).id)])
        #expect(try Self.rows(directory) == [0, 0])
    }

    /// An earlier release knows no replies: the tables do not prevent its changes, and follow them.
    @Test func repliesFollowTheChangesOfAnEarlierRelease() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            _ = try await store.deliver([Self.reply(1), Self.reply(2)], receivedAt: Self.time)
            try await store.change([.add(Self.queued(3)), .add(Self.queued(4))])
        }
        do {
            let database = try SQLiteDatabase(path: "\(directory.path)/\(Store.fileName)")
            try database.execute("PRAGMA foreign_keys = ON")
            try database.execute("DELETE FROM messages WHERE id = x'00000000000000000000000000000001'")
            try database.execute("DELETE FROM outbox WHERE id = x'00000000000000000000000000000003'")
        }
        #expect(try Self.rows(directory) == [1, 1])
        let store = try Store(directory: directory.path)
        #expect(try await store.messages(state: nil, from: nil, limit: 9).map(\.inReplyTo) == [Self.question])
        #expect(try await store.outbox().map(\.inReplyTo) == [Self.question])
    }

    /// If the disk was full at every start, the tables are missing. A message is more important than the message to which it replies.
    @Test func withoutTheTablesAReplyIsStoredAsAnyMessage() async throws {
        let directory = try StateDirectory()
        do { _ = try Store(directory: directory.path) }
        do {
            // A name that is taken stands for a disk without room: either way, there is no such table.
            let database = try SQLiteDatabase(path: "\(directory.path)/\(Store.fileName)")
            try database.execute("DROP TABLE outbox_replies; CREATE VIEW outbox_replies AS SELECT 1")
        }
        let store = try Store(directory: directory.path)
        _ = try await store.deliver([Self.reply(1)], receivedAt: Self.time)
        try await store.change([.add(Self.queued(2))])
        #expect(try await store.messages(state: nil, from: nil, limit: 9).map(\.inReplyTo) == [nil])
        #expect(try await store.outbox().map(\.inReplyTo) == [nil])
    }
}
