import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore
@testable import EarshotWire

/// Which of two connections stands, and when a lost one is dialled again, each at its edge.
@Suite(.timeLimit(.minutes(1))) struct NodeDialTests {
    /// A peer by hand in a session with a node, which has seen it where no process listens; which of the two has the lower id.
    private func joined(_ loop: NIOAsyncTestingEventLoop, nodeIsLower: Bool) async throws -> (RawPeer, TestNode) {
        let states = [try StateDirectory(), try StateDirectory()]
        let identities = try states.map { try Identity.load(from: $0.path) }
        let node = (identities[0].id < identities[1].id) == nodeIsLower ? 0 : 1
        let bob = try await TestNode("bob", in: states[node]) {
            $0.fromUnknown = .accept
            $0.timers = Timers(on: loop)
        }
        let raw = try await RawPeer(to: bob, as: identities[1 - node])
        try await raw.prove()
        _ = try await raw.join()
        bob.discovery.tell(.found(.embedded, bob.sighting(id: raw.id, name: "alice", port: 1)))
        _ = try await bob.told()
        return (raw, bob)
    }

    private func isDialled(_ raw: RawPeer, by bob: TestNode) async -> Bool {
        await bob.node.record(raw.id).map { $0.reach.isDialling || $0.reach.attempts > 0 } ?? false
    }

    private func expectRedial(_ raw: RawPeer, by bob: TestNode, after pause: Duration, _ loop: NIOAsyncTestingEventLoop) async throws {
        try await eventually("the connection is gone, and the next one is planned") {
            await bob.node.record(raw.id).map { $0.connection == nil && $0.reach.isScheduled } ?? false
        }
        await loop.advanceTime(by: TimeAmount(pause) - .nanoseconds(1))
        _ = try await bob.told()
        #expect(await !self.isDialled(raw, by: bob))
        await loop.advanceTime(by: .nanoseconds(1))
        try await eventually("it is dialled") { await self.isDialled(raw, by: bob) }
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func higherPeerDialDelay() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob) = try await self.joined(loop, nodeIsLower: false)
        await raw.close()
        try await self.expectRedial(raw, by: bob, after: EarshotLimits.higherPeerDialDelay, loop)
    }

    @Test func theLowerPeerDialsAtOnce() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob) = try await self.joined(loop, nodeIsLower: true)
        await raw.close()
        try await eventually("it is dialled") { await self.isDialled(raw, by: bob) }
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test(arguments: [false, true]) func supersededDialDelay(nodeIsLower: Bool) async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob) = try await self.joined(loop, nodeIsLower: nodeIsLower)
        try await raw.send(.refusal(Refusal(code: .superseded, explanation: "another connection stands")))
        try await self.expectRedial(raw, by: bob, after: EarshotLimits.supersededDialDelay, loop)
        await raw.close()
    }
}
