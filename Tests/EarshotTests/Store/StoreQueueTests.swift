import EarshotWire
import FoundationEssentials
import NIOCore
import Testing

@testable import Earshot

/// The order and the batches in which work goes to the disk.
@Suite struct StoreQueueTests {
    private let accounts = PeerAccounts()

    private func delivery(_ count: Int, of sender: UInt8, weight: Int = 1) throws -> StoreWork.Delivery {
        let connection = try deadConnection(of: peerID(sender), accounts: self.accounts)
        let message = InboxMessage(
            id: .random(), senderID: peerID(sender), senderName: "x", contentType: "a/b", body: ByteBuffer(), sentAt: Date(),
            isResumed: false)
        return StoreWork.Delivery(messages: Array(repeating: message, count: count), origin: .connection(connection), weight: weight)
    }

    private func senders(_ batch: StoreQueue.Batch?) -> [PeerID]? {
        guard case .deliver(let deliveries)? = batch else { return nil }
        return deliveries.map(\.sender)
    }

    @Test func sendersTakeTurns() throws {
        var queue = StoreQueue()
        for _ in 0..<3 { queue.append(.deliver(try self.delivery(EarshotLimits.deliveryBatch / 2, of: 1))) }
        queue.append(.deliver(try self.delivery(1, of: 2)))
        #expect(queue.count == 4)
        #expect(self.senders(queue.next()) == [peerID(1), peerID(2), peerID(1)], "nobody waits for all of another's")
        #expect(self.senders(queue.next()) == [peerID(1)])
        #expect(queue.next().map(self.transactions) == nil)
        #expect(queue.count == 0)
    }

    @Test(arguments: [0, 1]) func deliveryBatchBytes(missing: Int) throws {
        var queue = StoreQueue()
        queue.append(.deliver(try self.delivery(1, of: 1, weight: EarshotLimits.deliveryBatchBytes - missing)))
        queue.append(.deliver(try self.delivery(1, of: 1)))
        #expect(self.senders(queue.next())?.count == 1 + missing)
    }

    /// Many messages are requested directly after others that are being committed; few are not, and other work is not delayed for them.
    @Test(arguments: [0, 1]) func deliveriesToFollow(missing: Int) throws {
        var queue = StoreQueue()
        queue.append(.deliver(try self.delivery(EarshotLimits.deliveriesToFollow - missing, of: 1)))
        #expect(queue.hasDeliveriesToFollow == (missing == 0))
        queue.append(.apply([]) { _ in })
        #expect(!queue.hasDeliveriesToFollow, "a decision waits for what the disk has")
        #expect(queue.next().map(self.transactions) == 1)
        #expect(queue.hasDeliveriesToFollow == (missing == 0))
        #expect(self.senders(queue.nextDeliveries()) == [peerID(1)])
        #expect(!queue.hasDeliveriesToFollow)
        #expect(queue.nextDeliveries().map(self.transactions) == nil)
    }

    @Test(arguments: [0, 1]) func transactionsAtOnce(beyond: Int) {
        var queue = StoreQueue()
        for _ in 0..<EarshotLimits.transactionsAtOnce + beyond { queue.append(.apply([]) { _ in }) }
        #expect(queue.next().map(self.transactions) == EarshotLimits.transactionsAtOnce)
        #expect(queue.next().map(self.transactions) == (beyond > 0 ? beyond : nil))
    }

    private func transactions(_ batch: StoreQueue.Batch) -> Int {
        switch batch {
        case .apply(let batch): batch.count
        case .outbox(let batch): batch.count
        case .deliver(let batch): batch.count
        case .decide: 1
        }
    }

    /// A decision is made when the earlier ones are in memory.
    @Test func decisionsKeepTheirOrder() {
        var queue = StoreQueue()
        queue.append(.apply([]) { _ in })
        queue.append(.apply([]) { _ in })
        queue.append(.decide({ StoreWork.Decision(changes: []) }) { _ in })
        queue.append(.apply([]) { _ in })
        var found: [Int] = []
        while let batch = queue.next() {
            switch batch {
            case .apply(let batch): found.append(batch.count)
            case .decide: found.append(0)
            case .deliver, .outbox: Issue.record("nothing of that kind waits")
            }
        }
        #expect(found == [2, 0, 1])
    }

    /// However much work waits in one lane, the next work of the others is not delayed for long.
    @Test func lanesTakeTurns() throws {
        var queue = StoreQueue()
        for _ in 0..<3 {
            queue.append(.decide({ StoreWork.Decision(changes: []) }) { _ in })
            queue.append(.deliver(try self.delivery(EarshotLimits.deliveryBatch, of: 1)))
        }
        queue.append(.outbox(StoreWork.Keeping(id: KeepID(number: 1), changes: [])))
        var found: [String] = []
        while let batch = queue.next() {
            switch batch {
            case .apply: found.append("apply")
            case .decide: found.append("decide")
            case .deliver: found.append("deliver")
            case .outbox: found.append("outbox")
            }
        }
        #expect(found == ["decide", "deliver", "outbox", "decide", "deliver", "decide", "deliver"])
    }
}
