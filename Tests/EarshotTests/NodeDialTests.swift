import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotWire

/// Which of two connections stands, and when a lost one is dialled again, each at its edge.
@Suite(.timeLimit(.minutes(1))) struct NodeDialTests {
    /// A proven connection with this key, as the transport would report it.
    private func connect(
        _ id: PeerID, to bob: TestNode, isInitiator: Bool, provenAt: ContinuousClock.Instant
    ) async throws -> Connection {
        let channel = NIOAsyncTestingChannel()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        let peer = ProvenPeer(
            id: id, displayName: try DisplayName("alice"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let connection = Connection(channel: channel, peer: peer, isInitiator: isInitiator, provenAt: provenAt, dialledAddress: nil)
        bob.node.input.yield(.connection(.proven(connection)))
        return connection
    }

    @Test(arguments: [(EarshotLimits.simultaneousDialTime - .nanoseconds(1), true), (EarshotLimits.simultaneousDialTime, false)])
    func simultaneousDialTime(apart: Duration, isSimultaneous: Bool) async throws {
        let bob = try await TestNode("bob")
        let (id, start) = (peerID(1), ContinuousClock.now)
        // The first one is that which the lower id has dialled: of two that were dialled at once it stands.
        let isLower = bob.node.id < id
        let first = try await self.connect(id, to: bob, isInitiator: isLower, provenAt: start)
        let second = try await self.connect(id, to: bob, isInitiator: !isLower, provenAt: start + apart)
        _ = try await bob.told()
        #expect(await bob.node.records[id]?.connection === (isSimultaneous ? first : second))
        for connection in [first, second] { try await connection.channel.close() }
        await bob.stop()
    }

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
        await bob.node.records[raw.id].map { $0.redial.isDialling || $0.redial.attempts > 0 } ?? false
    }

    private func expectRedial(_ raw: RawPeer, by bob: TestNode, after pause: Duration, _ loop: NIOAsyncTestingEventLoop) async throws {
        try await eventually("the connection is gone, and the next one is planned") {
            await bob.node.records[raw.id].map { $0.connection == nil && $0.redial.timer != nil } ?? false
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
