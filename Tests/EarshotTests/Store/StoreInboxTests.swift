@testable import Earshot
import EarshotWire
import Foundation
import NIOCore
import Testing

@Suite struct StoreInboxTests {
    private static let time = Date(timeIntervalSince1970: 1_700_000_001)
    private static let weight = UInt64(EarshotLimits.messageOverhead) + 8

    private func store(_ directory: StateDirectory, count: Int = 1000, bytes: UInt64 = 1 << 20) throws -> Store {
        try Store(directory: directory.path, inbox: InboxLimits(count: count, bytes: bytes))
    }

    @Test func aMessageComesBackAsItWasDelivered() async throws {
        let directory = try StateDirectory()
        let message = InboxMessage(
            id: MessageID(high: .max, low: 0), senderID: peerID(1), senderName: "bob\u{202E}\0x", contentType: "text/plain; charset=utf-8",
            body: ByteBuffer(bytes: [0, 255, 10, 0]), sentAt: Date(timeIntervalSince1970: -1.5))
        let empty = inboxMessage(2, size: 0)
        let store = try self.store(directory)
        let outcomes = try await store.deliver([message, empty], receivedAt: Self.time)
        guard case .stored(let stored) = outcomes[0] else {
            Issue.record("not stored: \(outcomes[0])")
            return
        }
        let kept = try await store.messages(state: nil, from: nil, limit: 10)
        #expect(kept.first == stored)
        #expect(stored.body == message.body && stored.senderName == message.senderName && stored.sent == message.sent)
        #expect(stored.receivedAt == Self.time && stored.readState == .unread && stored.direction == .incoming)
        #expect(kept.last?.body.readableBytes == 0)
    }

    @Test func repeatsAreKnownInOneBatchInAnotherAndAfterARestart() async throws {
        let directory = try StateDirectory()
        do {
            let store = try self.store(directory)
            let outcomes = try await store.deliver([inboxMessage(1), inboxMessage(1), inboxMessage(2)], receivedAt: Self.time)
            #expect(outcomes.map(\.isStored) == [true, false, true])
            #expect(outcomes[1] == .duplicate)
            #expect(try await store.deliver([inboxMessage(1, size: 9)], receivedAt: Self.time) == [.duplicate])
        }
        let store = try self.store(directory)
        #expect(try await store.deliver([inboxMessage(2)], receivedAt: Self.time) == [.duplicate])
        let foreign = InboxMessage(
            id: inboxMessage(1).id, senderID: peerID(7), senderName: "", contentType: "", body: ByteBuffer(), sentAt: Self.time)
        #expect(try await store.deliver([foreign], receivedAt: Self.time).map(\.isStored) == [true])
        #expect(try await store.messages(id: foreign.id, from: nil).map(\.senderID) == [peerID(1), peerID(7)])
        #expect(try await store.messages(id: foreign.id, from: peerID(7)).count == 1)
        let error = await #expect(throws: EarshotError.self) { try await store.markRead(id: foreign.id, from: nil, at: Self.time) }
        #expect(error?.code == .conflict)
        #expect(await store.unreadCount() == 3)
        #expect(try await store.markRead(id: foreign.id, from: peerID(7), at: Self.time)?.readState == .read)
        #expect(await store.unreadCount() == 2)
        #expect(try await store.markRead(id: MessageID(high: 9, low: 9), from: nil, at: Self.time) == nil)
    }

    @Test func manyAreMarkedReadAtOnce() async throws {
        let directory = try StateDirectory()
        let shared = inboxMessage(1)
        do {
            let store = try self.store(directory)
            let other = InboxMessage(
                id: shared.id, senderID: peerID(2), senderName: "", contentType: "", body: ByteBuffer(), sentAt: Self.time)
            let batch = [shared, other, inboxMessage(2), inboxMessage(3, from: 2), inboxMessage(4)]
            _ = try await store.deliver(batch, receivedAt: Self.time)
            let unclear = [Store.MessageKey(id: inboxMessage(2).id, sender: nil), Store.MessageKey(id: shared.id, sender: nil)]
            let error = await #expect(throws: EarshotError.self) { try await store.markRead(unclear, receiptsFor: [], at: Self.time) }
            #expect(error?.code == .conflict)
            #expect(await store.unreadCount() == 5, "one that is unclear marks none")
            let keys = [
                Store.MessageKey(id: shared.id, sender: peerID(2)), Store.MessageKey(id: inboxMessage(2).id, sender: nil),
                Store.MessageKey(id: inboxMessage(2).id, sender: peerID(1)), Store.MessageKey(id: MessageID(high: 9, low: 9), sender: nil),
            ]
            let marked = try await store.markRead(keys, receiptsFor: [peerID(2)], at: Self.time)
            #expect(marked == [peerID(1): [inboxMessage(2).id], peerID(2): [shared.id]])
            #expect(try await store.markRead(keys, receiptsFor: [], at: Self.time) == [:])
            // The id is now unambiguous, because the other sender's message is no longer unread.
            let ofOne = try await store.markRead([Store.MessageKey(id: shared.id, sender: nil)], receiptsFor: [], at: Self.time)
            #expect(ofOne == [peerID(1): [shared.id]])
            #expect(await store.unreadCount() == 2)
        }
        let store = try self.store(directory)
        #expect(await store.unreadCount() == 2)
        let unread = try await store.messages(state: .unread, from: nil, limit: 9)
        #expect(unread.map(\.id) == [inboxMessage(3, from: 2).id, inboxMessage(4).id])
    }

    @Test func theOrderIsThatOfDelivery() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 10_000, bytes: 1 << 30)
        // Ids in reverse order, and two senders taking turns.
        let messages = (0..<1000).map { inboxMessage(UInt64(5000 - $0), from: UInt8(1 + $0 % 2)) }
        for start in stride(from: 0, to: 1000, by: 300) {
            _ = try await store.deliver(Array(messages[start..<min(start + 300, 1000)]), receivedAt: Self.time)
        }
        #expect(try await store.messages(state: .unread, from: nil, limit: 2000).map(\.id) == messages.map(\.id))
        #expect(
            try await store.messages(state: .unread, from: peerID(2), limit: 10).map(\.id)
                == messages.filter { $0.senderID == peerID(2) }.prefix(10).map(\.id))
        _ = try await store.markRead(id: messages[0].id, from: nil, at: Self.time)
        _ = try await store.markRead(id: messages[2].id, from: messages[2].senderID, at: Self.time)
        #expect(try await store.messages(state: .unread, from: nil, limit: 2).map(\.id) == [messages[1].id, messages[3].id])
        #expect(try await store.messages(state: .read, from: nil, limit: 9).map(\.id) == [messages[0].id, messages[2].id])
        #expect(try await store.messages(state: nil, from: nil, limit: 2).map(\.id) == [messages[0].id, messages[1].id])
        #expect(try await store.messages(state: nil, from: nil, limit: 0) == [])
        #expect(try await store.messages(state: nil, from: nil, limit: -5) == [])
        #expect(try await store.messages(state: .unread, from: peerID(99), limit: 5) == [])
    }

    /// A caller that continues after each page's place gets every message once, and no page exceeds the limit.
    @Test func pagesAreBoundedByCountAndBytes() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, bytes: 1 << 30)
        let limit = EarshotLimits.messagePageBytes
        // Exactly a page; one byte more than a page; a single message that is larger than a page; and the rest.
        let sizes = [limit - 10, 10, 0, limit - 9, 10, limit + 1, 1, 1]
        let messages = sizes.enumerated().map { inboxMessage(UInt64($0), from: $0 == 7 ? 2 : 1, size: $1) }
        _ = try await store.deliver(messages, receivedAt: Self.time)
        var pages: [[MessageID]] = []
        var place: Int64? = 0
        while let after = place {
            let page = try await store.messagePage(state: .unread, from: nil, after: after, limit: 100)
            #expect(page.messages.count == 1 || page.messages.reduce(0) { $0 + $1.body.readableBytes } <= limit)
            pages.append(page.messages.map(\.id))
            place = page.next
        }
        let ids = messages.map(\.id)
        #expect(pages == [Array(ids[0...2]), [ids[3]], [ids[4]], [ids[5]], Array(ids[6...7])])
        // By count: there is a next page only if there are more messages.
        let one = try await store.messagePage(state: nil, from: peerID(1), after: 0, limit: 1)
        #expect(one.messages.map(\.id) == [messages[0].id])
        let rest = try await store.messagePage(state: nil, from: peerID(1), after: try #require(one.next), limit: 2)
        #expect(rest.messages.map(\.id) == [messages[1].id, messages[2].id] && rest.next != nil)
        let last = try await store.messagePage(state: nil, from: peerID(2), after: 0, limit: 1)
        #expect(last.messages.map(\.id) == [messages[7].id] && last.next == nil)
        #expect(try await store.messagePage(state: nil, from: nil, after: .max, limit: 5) == MessagePage(messages: [], next: nil))
    }

    @Test func fullByCount() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 4)
        let batch = [
            inboxMessage(1, from: 1), inboxMessage(2, from: 2), inboxMessage(3, from: 3), inboxMessage(4, from: 4),
            inboxMessage(5, from: 5),
        ]
        let outcomes = try await store.deliver(batch, receivedAt: Self.time)
        #expect(outcomes.map(\.isStored) == [true, true, true, true, false])
        #expect(outcomes[4] == .refused(.inboxFull))
        // A repeated message is a duplicate, not a refusal.
        #expect(try await store.deliver([batch[0], batch[4]], receivedAt: Self.time) == [.duplicate, .refused(.inboxFull)])
        _ = try await store.markRead(id: batch[0].id, from: nil, at: Self.time)
        #expect(try await store.deliver([batch[4], inboxMessage(6, from: 6)], receivedAt: Self.time).map(\.isStored) == [true, false])
    }

    /// When the end of a session is written, the next one may have begun, and a message of it may have been refused.
    @Test func theEndOfASessionLetsNothingOvertakeWhatWasRefused() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 1)
        let other = inboxMessage(1, from: 2)
        #expect(try await store.deliver([other, inboxMessage(1)], receivedAt: Self.time).map(\.isStored) == [true, false])
        try await store.apply([.removeSession(with: peerID(1))])
        _ = try await store.markRead(id: other.id, from: nil, at: Self.time)
        let later = [inboxMessage(2, isResumed: false), inboxMessage(1)]
        #expect(try await store.deliver(later, receivedAt: Self.time).map(\.isStored) == [false, true])
    }

    /// A peer whose settings accept strangers meets new ones all the time.
    @Test func soManyConversationsAreRememberedForARefusal() async throws {
        let store = try self.store(try StateDirectory())
        let count = EarshotLimits.refusedConversations + 1
        func message(_ number: Int, in group: Int, follows: Bool) -> InboxMessage {
            InboxMessage(
                id: MessageID(high: 1, low: UInt64(number)), senderID: peerID(1), senderName: "", contentType: "", body: ByteBuffer(),
                sent: WallTime(milliseconds: 0), isResumed: false, followsRefusal: follows,
                group: GroupLabel(id: GroupID(high: 1, low: UInt64(group)), name: ""))
        }
        let refused = (0..<count).map { message($0, in: $0, follows: true) }
        #expect(try await store.deliver(refused, receivedAt: Self.time).allSatisfy { !$0.isStored })
        let later = [message(count, in: 0, follows: false), message(count + 1, in: 1, follows: false)]
        #expect(try await store.deliver(later, receivedAt: Self.time).map(\.isStored) == [true, false])
    }

    @Test func aPartStaysForOtherSenders() async throws {
        let part = InboxLimits.partForOthers
        let directory = try StateDirectory()
        let store = try self.store(directory, count: part)
        let outcomes = try await store.deliver((0..<UInt64(part)).map { inboxMessage($0) }, receivedAt: Self.time)
        #expect(outcomes.map(\.isStored) == Array(repeating: true, count: part - 1) + [false])
        #expect(try await store.deliver([inboxMessage(0, from: 2)], receivedAt: Self.time).map(\.isStored) == [true])
        let small = try StateDirectory()
        let bytes = try self.store(small, bytes: Self.weight * UInt64(part))
        #expect(try await bytes.deliver((0..<UInt64(part)).map { inboxMessage($0) }, receivedAt: Self.time).last == .refused(.inboxFull))
        let tiny = try StateDirectory()
        let undivided = try self.store(tiny, count: 3)
        #expect(
            try await undivided.deliver((0..<4).map { inboxMessage($0) }, receivedAt: Self.time).map(\.isStored) == [
                true, true, true, false,
            ])
    }

    @Test func fullByBytesAtTheEdgeAlsoAfterARestart() async throws {
        let directory = try StateDirectory()
        let limit = Self.weight * 4 + 7
        do {
            let store = try self.store(directory, bytes: limit)
            let batch = (1...5).map { inboxMessage(1, from: UInt8($0)) }
            #expect(try await store.deliver(batch, receivedAt: Self.time).map(\.isStored) == [true, true, true, true, false])
        }
        let store = try self.store(directory, bytes: limit)
        #expect(try await store.deliver([inboxMessage(1, from: 9)], receivedAt: Self.time) == [.refused(.inboxFull)])
        _ = try await store.markRead(id: inboxMessage(1, from: 1).id, from: nil, at: Self.time)
        #expect(try await store.deliver([inboxMessage(1, from: 9, size: 16)], receivedAt: Self.time) == [.refused(.inboxFull)])
        #expect(try await store.deliver([inboxMessage(2, from: 9, size: 15)], receivedAt: Self.time).map(\.isStored) == [true])
    }

    @Test func onlyOldReadMessagesArePrunedAndTheirIdsRemembered() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 10_000, bytes: 1 << 30)
        _ = try await store.deliver((0..<2500).map { inboxMessage($0) }, receivedAt: Self.time)
        try await store.sql("UPDATE messages SET read_at = 1000 WHERE place <= 2400")
        let reopened = try self.store(directory, count: 10_000, bytes: 1 << 30)
        _ = try await reopened.markRead(id: inboxMessage(2450).id, from: nil, at: Date(timeIntervalSince1970: 2))
        #expect(try await reopened.prune(readBefore: Date(timeIntervalSince1970: 2), now: Self.time) == 2400)
        #expect(await reopened.unreadCount() == 99)
        #expect(try await reopened.messages(state: .read, from: nil, limit: 9).map(\.id) == [inboxMessage(2450).id])
        #expect(try await reopened.deliver([inboxMessage(0), inboxMessage(2399)], receivedAt: Self.time) == [.duplicate, .duplicate])
        #expect(await reopened.usage == (try Store(directory: directory.path)).usage)
        // Remembered for fourteen days, and not forever.
        let later = Self.time + Double(InboxLimits.rememberedSeconds)
        try await reopened.prune(readBefore: .distantPast, now: later)
        #expect(try await reopened.integer("SELECT count(*) FROM remembered") == 2400)
        try await reopened.prune(readBefore: .distantPast, now: later + 1)
        #expect(try await reopened.integer("SELECT count(*) FROM remembered") == 0)
    }

    @Test func rememberedPerSender() async throws {
        let directory = try StateDirectory()
        let limit = InboxLimits.rememberedPerSender
        let at = Int64(Self.time.timeIntervalSince1970 * 1000)
        do {
            let store = try self.store(directory, count: 100, bytes: 1 << 30)
            _ = try await store.deliver([inboxMessage(1), inboxMessage(2), inboxMessage(3, from: 2)], receivedAt: Self.time)
            try await store.sql(
                """
                UPDATE messages SET read_at = place;
                INSERT INTO remembered (sender, id, received_at) VALUES (x'\(peerID(2).bytes.hexadecimal)', randomblob(16), \(at));
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(limit - 1))
                INSERT INTO remembered (sender, id, received_at) SELECT x'\(peerID(1).bytes.hexadecimal)', randomblob(16), \(at) FROM n
                """)
        }
        let store = try self.store(directory, count: 100, bytes: 1 << 30)
        let first = "SELECT min(place) FROM remembered WHERE sender = x'\(peerID(1).bytes.hexadecimal)'"
        let count = "SELECT count(*) FROM remembered WHERE sender = x'\(peerID(1).bytes.hexadecimal)'"
        let oldest = try await store.integer(first)
        // One more reaches the limit, and the next one evicts the oldest.
        #expect(try await store.forget(readBefore: nil, limit: 1, at: Self.time) == 1)
        #expect(try await store.integer(count) == limit)
        #expect(try await store.integer(first) == oldest)
        #expect(try await store.forget(readBefore: nil, limit: 1, at: Self.time) == 1)
        #expect(try await store.integer(count) == limit)
        #expect(try await store.integer(first) == oldest + 1)
        #expect(try await store.deliver([inboxMessage(1), inboxMessage(2)], receivedAt: Self.time) == [.duplicate, .duplicate])
        // Another sender has its own limit.
        #expect(try await store.forget(readBefore: nil, limit: 1, at: Self.time) == 1)
        #expect(try await store.integer("SELECT count(*) FROM remembered") == limit + 2)
    }

    /// With a fast reader, a sender still cannot fill the disk with read messages.
    @Test func theHistoryOfReadMessagesIsBoundedToo() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 4)
        for number in UInt64(0)..<10 {
            #expect(try await store.deliver([inboxMessage(number)], receivedAt: Self.time).map(\.isStored) == [true])
            _ = try await store.markRead(id: inboxMessage(number).id, from: nil, at: Self.time + Double(number))
        }
        #expect(try await store.messages(state: nil, from: nil, limit: 99).map(\.id) == (6..<10).map { inboxMessage($0).id })
        #expect(
            try await store.deliver((0..<10).map { inboxMessage($0) }, receivedAt: Self.time) == Array(repeating: .duplicate, count: 10))
        #expect(await store.usage == (try Store(directory: directory.path)).usage)
    }

    /// Every message with the outcome `.stored` exists if the process is killed at that moment.
    @Test func whatWasStoredSurvivesAKill() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory)
        for number in UInt64(0)..<5 {
            _ = try await store.deliver([inboxMessage(number * 2), inboxMessage(number * 2 + 1)], receivedAt: Self.time)
            let killed = try directory.copied()
            let reopened = try self.store(killed)
            #expect(
                try await reopened.messages(state: nil, from: nil, limit: 99).map(\.id)
                    == (0..<(number * 2 + 2)).map { inboxMessage($0).id })
            #expect(await reopened.unreadCount() == Int(number * 2 + 2))
        }
    }

    @Test func aFullDiskChangesNothingAndPasses() async throws {
        let directory = try StateDirectory()
        let store = try self.store(directory, count: 10_000, bytes: 1 << 30)
        _ = try await store.deliver([inboxMessage(1)], receivedAt: Self.time)
        let pages = try await store.integer("PRAGMA page_count")
        try await store.sql("PRAGMA max_page_count = \(pages + 4)")
        let usage = await store.usage
        // The first message of the batch would have fitted, but a batch is atomic.
        let batch = [inboxMessage(2)] + (3..<10).map { inboxMessage($0, size: 100_000) }
        let error = await #expect(throws: EarshotError.self) { try await store.deliver(batch, receivedAt: Self.time) }
        #expect(error?.code == .noSpace)
        #expect(await store.usage == usage)
        #expect(try await store.messages(state: nil, from: nil, limit: 99).map(\.id) == [inboxMessage(1).id])
        #expect(try await store.deliver([inboxMessage(2)], receivedAt: Self.time).map(\.isStored) == [true])
        try await store.sql("PRAGMA max_page_count = 1000000")
        #expect(try await store.deliver(Array(batch.dropFirst()), receivedAt: Self.time).allSatisfy(\.isStored))
        #expect(await store.usage == (try Store(directory: directory.path)).usage)
    }

    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func aReallyFullDiskChangesNothingAndPasses() async throws {
        let disk = try SmallDisk(kilobytes: 1024)
        let store = try Store(directory: "\(disk.path)/state", inbox: InboxLimits())
        var stored: [MessageID] = []
        var failure: EarshotError?
        for number in UInt64(0)..<200 where failure == nil {
            let message = inboxMessage(number, size: 20_000)
            do {
                _ = try await store.deliver([message], receivedAt: Self.time)
                stored.append(message.id)
            } catch {
                failure = error
            }
        }
        #expect(failure?.code == .noSpace)
        try #require(!stored.isEmpty)
        #expect(try await store.messages(state: .unread, from: nil, limit: 1000).map(\.id) == stored)
        #expect(await store.unreadCount() == stored.count)
        try disk.resize(kilobytes: 8192)
        #expect(try await store.deliver([inboxMessage(900, size: 20_000)], receivedAt: Self.time).map(\.isStored) == [true])
        #expect(try await store.messages(state: .unread, from: nil, limit: 1000).count == stored.count + 1)
    }
}

/// A tmpfs of a few kilobytes, deleted with its test.
final class SmallDisk: Sendable {
    let path: String

    /// Whether this process may mount one, tried once.
    static let isAvailable = (try? SmallDisk(kilobytes: 64)) != nil

    init(kilobytes: Int, entries: Int? = nil) throws {
        self.path = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-disk-\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
        do {
            let limit = entries.map { ",nr_inodes=\($0)" } ?? ""
            try Self.run("mount", "-t", "tmpfs", "-o", "size=\(kilobytes)k\(limit)", "none", self.path)
        } catch {
            try? FileManager.default.removeItem(atPath: self.path)
            throw error
        }
    }

    func resize(kilobytes: Int) throws { try Self.run("mount", "-o", "remount,size=\(kilobytes)k", self.path) }

    deinit {
        try? Self.run("umount", "-l", self.path)
        try? FileManager.default.removeItem(atPath: self.path)
    }

    fileprivate static func run(_ command: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}

/// A directory with its own bind mount, at a given path (where it obstructs) or elsewhere; deleted with its test.
final class BoundDirectory: Sendable {
    let path: String

    init(of directory: String, at path: String? = nil) throws {
        self.path = path ?? FileManager.default.temporaryDirectory.appendingPathComponent("earshot-bound-\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
        do {
            try SmallDisk.run("mount", "--bind", directory, self.path)
        } catch {
            try? FileManager.default.removeItem(atPath: self.path)
            throw error
        }
    }

    deinit {
        // Removes only the mount point, and no content if the mount still exists.
        try? SmallDisk.run("umount", "-l", self.path)
        rmdir(self.path)
    }
}
