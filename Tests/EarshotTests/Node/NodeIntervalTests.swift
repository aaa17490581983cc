import EarshotWaiting
import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot

/// Periodic and delayed actions of the node, at the exact times; the test moves the time.
@Suite(.timeLimit(.minutes(1))) struct NodeIntervalTests {
    private let loop = NIOAsyncTestingEventLoop()

    /// Waits until due work is done by the node, its jobs and the store.
    private func settle(_ node: TestNode) async throws {
        _ = try await node.told()
        let job = OneShot<Void>()
        node.node.job.yield { job.settle(()) }
        await job.value()
        _ = await node.node.store.unreadCount()
    }

    /// Advances the time by the interval. The condition holds just before its end, and no longer at the end.
    private func pass(_ interval: Duration, on node: TestNode, before: () async throws -> Bool) async throws {
        await self.loop.advanceTime(by: TimeAmount(interval) - .nanoseconds(1))
        try await self.settle(node)
        #expect(try await before())
        await self.loop.advanceTime(by: .nanoseconds(1))
    }

    @Test func firstPruningAndPruningInterval() async throws {
        let (alice, bob) = try await pair(configureBob: {
            $0.timers = Timers(on: self.loop)
            $0.inboxAge = .seconds(1)
        })
        for interval in [EarshotLimits.firstPruning, EarshotLimits.pruningInterval, EarshotLimits.pruningInterval] {
            _ = try await alice.send("old", to: bob)
            let message = try #require(try await bob.node.messages(state: .unread, from: nil, limit: 1).first)
            _ = try await bob.node.markRead(message.id, from: nil)
            try await self.pass(interval, on: bob) { try await bob.inbox() == ["old"] }
            try await eventually("it is gone") { try await bob.inbox() == [] }
            try await eventually("the next time is planned") { await bob.node.pruning != nil }
        }
        await alice.stop()
        await bob.stop()
        await self.loop.end()
    }

    /// A receipt's acknowledgement is stored together with other changes within this time.
    @Test func anAcknowledgementIsStoredAfterTheDelay() async throws {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.timers = Timers(on: self.loop)
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        let id = MessageID.random()
        try await raw.send(raw.message("x", in: session, id: id))
        try await eventually("it has come") { try await bob.inbox() == ["x"] }
        _ = try await bob.node.markRead(id, from: nil)
        _ = try await raw.next { $0 == .messageReceipts([MessageReceipt(id: id, outcome: .read)]) ? () : nil }
        try await raw.send(.messageReceipts([MessageReceipt(id: id, outcome: .noted)]))
        try await raw.roundTrip()
        try await self.pass(EarshotLimits.noteDelay, on: bob) {
            guard await bob.node.core.isNoting else { return false }
            return try await bob.node.store.receipts(for: raw.id) == [id]
        }
        try await eventually("it is kept") { try await bob.node.store.receipts(for: raw.id) == [] }
        #expect(await !bob.node.core.isNoting)
        await raw.close()
        await bob.stop()
        await self.loop.end()
    }
}
