import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot

extension TestNode {
    fileprivate func queue(_ text: String, to other: PeerID, id: MessageID? = nil) async throws -> SentMessage {
        try await self.node.send(
            to: .peers([other.description]), contentType: "text/plain", body: ByteBuffer(string: text), id: id, queue: true)
    }

    fileprivate func statuses(_ id: MessageID) async throws -> [Message.Status] {
        try await self.node.message(id, from: nil).recipients.map(\.status)
    }

    fileprivate func read(_ text: String) async throws {
        let all = try await self.node.messages(state: .unread, from: nil, limit: 1000)
        let message = try #require(all.first { String(buffer: $0.body) == text })
        _ = try await self.node.markRead(message.id, from: nil)
    }
}

@Suite(.timeLimit(.minutes(2))) struct NodeQueueTests {
    @Test func whatIsQueuedSurvivesBothAndComesOnceAndInOrder() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        var ids: [MessageID] = []
        for text in ["1", "2", "3"] {
            let sent = try await alice.queue(text, to: bob.node.id)
            #expect(sent.recipients.map(\.status) == [.queued])
            ids.append(sent.id)
        }
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        #expect(try await alice2.statuses(ids[0]) == [.queued])
        #expect(try await String(buffer: alice2.node.message(ids[2], from: nil).body) == "3", "its body is on disk")
        let bob2 = try await TestNode("bob", in: bob.state)
        alice2.sees(bob2)
        try await eventually("all are delivered") { try await alice2.statuses(ids[2]) == [.delivered] }
        #expect(try await bob2.inbox() == ["1", "2", "3"])
        #expect(await alice2.node.core.queueUsage == QueueUsage())
        await alice2.stop()
        let alice3 = try await TestNode("alice", in: alice.state)
        #expect(try await alice3.statuses(ids[0]) == [.delivered], "a final status is kept")
        // The same message again is recognised, and another one with the same id is not.
        let again = try await alice3.queue("1", to: bob.node.id, id: ids[0])
        #expect(again.recipients.map(\.status) == [.delivered])
        let error = await #expect(throws: EarshotError.self) { try await alice3.queue("one", to: bob.node.id, id: ids[0]) }
        #expect(error?.code == .conflict)
        await alice3.stop()
        await bob2.stop()
    }

    @Test func queuedAndOtherMessagesKeepOneOrder() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        _ = try await alice.queue("1", to: bob.node.id)
        async let second = alice.send("2", to: bob)
        try await eventually("the second waits") { await alice.node.waitingSenders(for: bob.node.id) == 1 }
        let third = try await alice.queue("3", to: bob.node.id)
        let bob2 = try await TestNode("bob", in: bob.state)
        alice.sees(bob2)
        #expect(try await second.recipients.map(\.status) == [.delivered])
        try await eventually("the third is delivered") { try await alice.statuses(third.id) == [.delivered] }
        #expect(try await bob2.inbox() == ["1", "2", "3"])
        await alice.stop()
        await bob2.stop()
    }

    @Test func leavingGivesUpWhatIsQueued() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let sent = try await alice.queue("x", to: bob.node.id)
        let session = try #require(await alice.node.sessions().first)
        try await alice.node.leave(session.id)
        try await eventually("it has failed") { try await alice.statuses(sent.id) == [.failed] }
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        #expect(try await alice2.statuses(sent.id) == [.failed])
        #expect(try await alice2.node.message(sent.id, from: nil).recipients.first?.error == .notConnected)
        await alice2.stop()
    }

    @Test func atItsDeadlineItIsGivenUpForGood() async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.outboxAge = .milliseconds(50) })
        await bob.stop()
        try await eventually("alice has noticed") { await alice.node.connection(to: bob.node.id) == nil }
        let sent = try await alice.queue("late", to: bob.node.id)
        try await eventually("its time is up") { try await alice.statuses(sent.id) == [.failed] }
        let bob2 = try await TestNode("bob", in: bob.state)
        alice.sees(bob2)
        #expect(try await alice.send("after", to: bob2).recipients.map(\.status) == [.delivered])
        #expect(try await bob2.inbox() == ["after"])
        await alice.stop()
        await bob2.stop()
    }

    /// A refused message is retried when the receiver reads messages. Messages with a waiting caller fail immediately, and none overtakes
    /// another.
    @Test func aFullInboxHoldsUpWhatIsQueued() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.inboxLimit = 1 })
        #expect(try await alice.send("1", to: bob).recipients.map(\.status) == [.delivered])
        let second = try await alice.queue("2", to: bob.node.id)
        let third = try await alice.queue("3", to: bob.node.id)
        try await eventually("it was refused") { await alice.node.isHeldUp(for: bob.node.id) }
        let refused = try await alice.send("now", to: bob)
        #expect(refused.recipients.map(\.status) == [.failed])
        #expect(refused.recipients.first?.error == .inboxFull)
        #expect(try await alice.statuses(second.id) == [.queued])
        try await bob.read("1")
        try await eventually("the second is delivered") { try await alice.statuses(second.id) == [.delivered] }
        try await bob.read("2")
        try await eventually("the third is delivered") { try await alice.statuses(third.id) == [.delivered] }
        #expect(try await bob.inbox() == ["2", "3"], "of the read ones as many are kept")
        await alice.stop()
        await bob.stop()
    }

    @Test func aTrustedPeerIsInvitedWhenItIsSeen() async throws {
        let (alice, bob) = try await pair(inSession: false, configureBob: { $0.fromUnknown = .accept })
        _ = try await alice.node.setTrust(.trusted, for: bob.node.id.description)
        await bob.stop()
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        let sent = try await alice2.queue("welcome", to: bob.node.id)
        let bob2 = try await TestNode("bob", in: bob.state) { $0.fromUnknown = .accept }
        alice2.sees(bob2)
        try await eventually("it is delivered") { try await alice2.statuses(sent.id) == [.delivered] }
        _ = try await alice2.node.setTrust(.unknown, for: bob.node.id.description)
        await #expect(throws: EarshotError.self, "a stranger without a session") { try await alice2.queue("x", to: bob.node.id) }
        await alice2.stop()
        await bob2.stop()
    }
}

@Suite(.timeLimit(.minutes(2))) struct NodeReceiptTests {
    @Test func theSenderLearnsThatItWasRead() async throws {
        let (alice, bob) = try await pair()
        let sent = try await alice.send("x", to: bob)
        try await bob.read("x")
        let status = try await alice.event { kind -> Message.Status? in
            if case .messageStatus(sent.id, let recipient) = kind, recipient.status == .read { recipient.status } else { nil }
        }
        #expect(status == .read)
        #expect(try await alice.statuses(sent.id) == [.read])
        try await eventually("it is noted") { try await bob.node.store.receipts(for: alice.node.id).isEmpty }
        await alice.stop()
        await bob.stop()
    }

    @Test func aReceiptWaitsForAnAbsentSender() async throws {
        let (alice, bob) = try await pair()
        let sent = try await alice.queue("x", to: bob.node.id)
        try await eventually("it is delivered") { try await alice.statuses(sent.id) == [.delivered] }
        await alice.stop()
        try await bob.read("x")
        await bob.stop()
        let bob2 = try await TestNode("bob", in: bob.state)
        let alice2 = try await TestNode("alice", in: alice.state)
        alice2.sees(bob2)
        try await eventually("it was read") { try await alice2.statuses(sent.id) == [.read] }
        await alice2.stop()
        let alice3 = try await TestNode("alice", in: alice.state)
        #expect(try await alice3.statuses(sent.id) == [.read])
        await alice3.stop()
        await bob2.stop()
    }

    @Test func noReceiptsWhereTheSettingsSayNo() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.receipts = false })
        let sent = try await alice.send("x", to: bob)
        try await bob.read("x")
        #expect(try await bob.node.store.receipts(for: alice.node.id).isEmpty)
        #expect(try await bob.send("after", to: alice).recipients.map(\.status) == [.delivered])
        #expect(try await alice.statuses(sent.id) == [.delivered])
        await alice.stop()
        await bob.stop()
    }

    @Test func theOldestPendingReceiptGivesWay() async throws {
        let state = try StateDirectory()
        var store = try Store(directory: state.path)
        try await store.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(EarshotLimits.pendingReceipts - 1))
            INSERT INTO receipts (sender, id) SELECT zeroblob(32), CAST(printf('%016d', i) AS BLOB) FROM n
            """)
        store = try Store(directory: state.path)
        for number in UInt64(1)...2 {
            _ = try await store.deliver([inboxMessage(number)], receivedAt: Date())
            _ = try await store.markRead(id: inboxMessage(number).id, from: nil, at: Date(), receipt: true)
            #expect(await store.receipts == EarshotLimits.pendingReceipts)
        }
        #expect(try await store.receipts(for: peerID(1)) == [inboxMessage(1).id, inboxMessage(2).id], "the oldest gave way")
    }
}

@Suite(.timeLimit(.minutes(2))) struct NodeUnreliableTests {
    @Test func onlyLiveReadersHearIt() async throws {
        let (alice, bob) = try await pair()
        let body = ByteBuffer(string: "now")
        let unheard = try await alice.node.send(to: .all, contentType: "x", body: body, mode: .unreliable)
        #expect(unheard.recipients.map(\.status) == [.sent])
        #expect(try await alice.send("a mark", to: bob).recipients.map(\.status) == [.delivered])
        let reader = bob.node.events.subscribe()
        async let heard = Self.unreliable(reader)
        let sent = try await alice.node.send(to: .peers(["bob"]), contentType: "x", body: body, mode: .unreliable)
        #expect(sent.recipients.map(\.status) == [.sent])
        let message = try #require(await heard)
        #expect(message.id == sent.id)
        #expect(message.body == body)
        #expect(try await bob.inbox() == ["a mark"])
        // A later reader finds a gap.
        #expect(try await alice.send("the end", to: bob).recipients.map(\.status) == [.delivered])
        for await event in bob.node.events.subscribe(since: 0) {
            guard case .messageReceived(let message) = event.kind else { continue }
            #expect(message.mode == .reliable)
            if String(buffer: message.body) == "the end" { break }
        }
        await bob.stop()
        let lost = try await alice.node.send(to: .peers(["bob"]), contentType: "x", body: body, mode: .unreliable)
        #expect(lost.recipients.map(\.status) == [.failed])
        await alice.stop()
    }

    private static func unreliable(_ reader: EventLog.Subscription) async -> Message? {
        for await event in reader {
            if case .messageReceived(let message) = event.kind, message.mode == .unreliable { return message }
        }
        return nil
    }

    @Test func allIsEverybodyWithASession() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let error = await #expect(throws: EarshotError.self) {
            try await alice.node.send(to: .all, contentType: "x", body: ByteBuffer())
        }
        #expect(error?.code == .notConnected)
        try await agree(alice, bob)
        let sent = try await alice.node.send(to: .all, contentType: "x", body: ByteBuffer(string: "hi"), timeout: .seconds(60))
        #expect(sent.recipients.map(\.peerID) == [bob.node.id])
        #expect(sent.recipients.map(\.status) == [.delivered])
        await alice.stop()
        await bob.stop()
    }

    /// A peer that acknowledges nothing does not delay messages from others.
    @Test func oneThatIsFullDoesNotDelayTheRest() async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.fromUnknown = .accept })
        let raw = try await RawPeer(to: alice)
        try await raw.prove()
        _ = try await raw.join()
        let body = ByteBuffer(repeating: 1, count: WireLimits.messageBody)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    _ = try await alice.node.send(to: [raw.id.description], contentType: "x", body: body, timeout: .seconds(3600))
                }
            }
            try await eventually("one waits") { await alice.node.waitingSenders(for: raw.id) >= 2 }
            group.addTask {
                _ = try await alice.node.send(
                    to: [raw.id.description, "bob"], contentType: "x", body: ByteBuffer(string: "both"), timeout: .seconds(3600))
            }
            try await eventually("bob has it") { try await bob.inbox() == ["both"] }
            await alice.stop()
            try await group.waitForAll()
        }
        await raw.close()
        await bob.stop()
    }

    @Test func theOldestSentMessageIsForgotten() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        var ids: [MessageID] = []
        for _ in 0...EarshotLimits.outgoingHistory {
            ids.append(try await alice.node.send(to: .all, contentType: "x", body: ByteBuffer(), mode: .unreliable).id)
        }
        await #expect(throws: EarshotError.self) { try await alice.node.message(ids[0], from: nil) }
        #expect(try await alice.node.message(ids[1], from: nil).id == ids[1])
        await alice.stop()
    }

    @Test func outgoingHistoryBytes() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let parts = 8
        let body = ByteBuffer(repeating: 0, count: EarshotLimits.outgoingHistoryBytes / parts - EarshotLimits.messageOverhead)
        var ids: [MessageID] = []
        for _ in 0..<parts { ids.append(try await alice.node.send(to: .all, contentType: "x", body: body, mode: .unreliable).id) }
        #expect(try await alice.node.message(ids[0], from: nil).id == ids[0], "they fit exactly")
        _ = try await alice.node.send(to: .all, contentType: "x", body: ByteBuffer(), mode: .unreliable)
        await #expect(throws: EarshotError.self) { try await alice.node.message(ids[0], from: nil) }
        #expect(try await alice.node.message(ids[1], from: nil).id == ids[1])
        await alice.stop()
    }
}

extension Node {
    func isHeldUp(for peer: PeerID) -> Bool { self.core.outbox(of: peer)?.isPaused ?? false }
}
