import DequeModule
import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// What one transaction of the store takes of what waits for it, and what one call marks as read.
@Suite(.timeLimit(.minutes(1))) struct StoreBatchLimitTests {
    @Test(arguments: [0, 1]) func deliveryBatch(beyond: Int) async throws {
        let bob = try await TestNode("bob")
        let count = EarshotLimits.deliveryBatch + beyond
        let left = Box<[Int]>([])
        await bob.node.queue(count, left)
        try await eventually("all are on disk") { left.value.count == count }
        // What is told of one that was committed shows how many the transaction had left.
        #expect(left.value == Array(repeating: beyond, count: EarshotLimits.deliveryBatch) + Array(repeating: 0, count: beyond))
        await bob.stop()
    }

    @Test func messagesListed() async throws {
        let state = try StateDirectory()
        let limit = EarshotLimits.messagesListed
        do {
            let store = try Store(directory: state.path)
            _ = try await store.deliver((0...UInt64(limit)).map { inboxMessage($0) }, receivedAt: Date())
        }
        let bob = try await TestNode("bob", in: state)
        for (wanted, given) in [(limit - 1, limit - 1), (limit, limit), (limit + 1, limit)] {
            #expect(try await bob.node.messages(state: nil, from: nil, limit: wanted).count == given)
        }
        await bob.stop()
    }

    @Test func messagesMarkedAtOnce() async throws {
        let bob = try await TestNode("bob")
        let ids = (0...EarshotLimits.messagesMarkedAtOnce).map { (id: MessageID(high: 1, low: UInt64($0)), from: String?.none) }
        #expect(try await bob.node.markRead(Array(ids.dropLast())) == 0)
        await #expect { try await bob.node.markRead(ids) } throws: { ($0 as? EarshotError)?.code == .invalidParameter }
        await bob.stop()
    }
}

extension Node {
    /// Queues so many changes of the outbox together, and notes for each how many waited when it was told.
    fileprivate func queue(_ count: Int, _ left: Box<[Int]>) {
        for _ in 0..<count {
            self.enqueue(
                .outbox([]) { _ in
                    let waiting = self.assumeIsolated { $0.storeQueue.count }
                    left.withLock { $0.append(waiting) }
                })
        }
    }
}
