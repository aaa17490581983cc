import DequeModule
import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// The limits of one transaction of the store, and of one call that marks messages read.
@Suite(.timeLimit(.minutes(1))) struct StoreBatchLimitTests {
    @Test(arguments: [0, 1]) func aBatchOfChangesEndsAtItsLimit(beyond: Int) {
        var queue = StoreQueue()
        for number in 0..<(EarshotLimits.deliveryBatch + beyond) {
            queue.append(.outbox(StoreWork.Keeping(id: KeepID(number: UInt64(number)), changes: [])))
        }
        guard case .outbox(let first)? = queue.next() else {
            Issue.record("nothing waits")
            return
        }
        #expect(first.map(\.id.number) == (0..<UInt64(EarshotLimits.deliveryBatch)).map { $0 })
        #expect(queue.count == beyond)
    }

    @Test func listsOfMessagesEndAtTheLimit() async throws {
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
