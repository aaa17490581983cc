import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

/// The node's own limits, at their exact values. A stranger only costs a key, which is free.
@Suite(.timeLimit(.minutes(2))) struct NodeLimitTests {
    /// Creates a node whose time the test moves, and that rejects strangers' invitations.
    private func bob(_ loop: NIOAsyncTestingEventLoop) async throws -> TestNode {
        try await TestNode("bob") {
            $0.timers = Timers(on: loop)
            $0.fromUnknown = .reject
            $0.fromTrusted = .reject
        }
    }

    private func stranger(to bob: TestNode) async throws -> RawPeer {
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await raw.roundTrip()
        return raw
    }

    /// Records that the node requests the end of the connection.
    private final class EndRecorder: ChannelOutboundHandler {
        typealias OutboundIn = [Frame]
        private let isEnded: Box<Bool>
        init(_ isEnded: Box<Bool>) { self.isEnded = isEnded }
        func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
            if case .close? = event as? Connection.Command { self.isEnded.withLock { $0 = true } }
            promise?.succeed()
        }
    }

    /// Reports a proven connection with this key, like the transport.
    private func connect(_ id: PeerID, to bob: TestNode) async throws -> (channel: NIOAsyncTestingChannel, isEnded: Box<Bool>) {
        let (channel, isEnded) = (NIOAsyncTestingChannel(), Box(false))
        try await channel.testingEventLoop.submit { try channel.pipeline.syncOperations.addHandler(EndRecorder(isEnded)) }.get()
        let peer = ProvenPeer(
            id: id, displayName: try DisplayName("stranger"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls,
            extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        bob.node.input.yield(
            .connection(
                .proven(Connection(channel: channel, peer: peer, isInitiator: false, dialledAddress: nil))))
        return (channel, isEnded)
    }

    @Test func theOldestIdleConnectionGivesWay() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.bob(loop)
        // A required connection, older than all strangers', which is never evicted.
        let needed = peerID(1)
        await bob.node.configure([try ConfiguredPeer("\(needed)@127.0.0.1:1")])
        var connections = [try await self.connect(needed, to: bob)]
        for number in 0...EarshotLimits.idleConnections {
            let id = PeerID(subjectPublicKeyInfo: [2, UInt8(number >> 8), UInt8(number & 0xFF)])
            connections.append(try await self.connect(id, to: bob))
            guard number >= EarshotLimits.idleConnections - 1 else { continue }
            let mark = "\(number)"
            bob.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
            try await bob.event { kind -> Void? in
                if case .discoveryChanged(let status) = kind, status.error == mark { () } else { nil }
            }
            // The node has decided, and the channel's loop learns of it a moment later.
            if number == EarshotLimits.idleConnections {
                try await eventually("the oldest stranger gives way") { connections[1].isEnded.value }
            }
            let ended = connections.indices.filter { connections[$0].isEnded.value }
            #expect(ended == (number < EarshotLimits.idleConnections ? [] : [1]), "the oldest stranger gives way, and no other")
        }
        for connection in connections { try await connection.channel.close() }
        await bob.stop()
        await loop.end()
    }

    @Test func idleConnectionTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.bob(loop)
        let stranger = try await self.stranger(to: bob)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.idleConnectionTime) - .nanoseconds(1))
        try await stranger.roundTrip()
        #expect(await bob.node.status().counts.connections == 1)
        await loop.advanceTime(by: .nanoseconds(1))
        #expect(await stranger.refusal() == nil, "closed in order")
        try await eventually("it is forgotten") { await bob.node.peers().isEmpty }
        await bob.stop()
        await loop.end()
    }

    @Test func decidedInvitationsAboveTheLimitAreForgotten() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.bob(loop)
        let stranger = try await self.stranger(to: bob)
        // The peer may now invite any number of times.
        _ = try await bob.node.setTrust(.trusted, for: stranger.id.description)
        var ids: [InvitationID] = []
        for number in 0...EarshotLimits.decidedInvitations {
            let id = InvitationID.random()
            ids.append(id)
            try await stranger.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
            let answer = try await stranger.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
            #expect(answer == InviteAnswer(id: id, decision: .declined))
            if number == EarshotLimits.decidedInvitations - 1 {
                #expect(await bob.node.invitations(all: true).map(\.id) == ids, "as many as the limit says are kept")
            }
        }
        #expect(await bob.node.invitations(all: true).map(\.id) == Array(ids.dropFirst()), "then the oldest goes")
        await #expect(throws: EarshotError.self) { try await bob.node.invitation(ids[0]) }
        await stranger.close()
        await bob.stop()
        await loop.end()
    }

    /// A peer with a session has the same grace time as one whose advertisement has disappeared: a short interruption is not a loss.
    @Test func aLostConnectionOfASessionHasTheSameGrace() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (alice, bob) = try await pair(configureBob: { $0.timers = Timers(on: loop) })
        bob.discovery.tell(.reset(.embedded))
        try await bob.event { kind -> Void? in
            if case .sessionChanged(let session, ended: false) = kind, session.members.first?.state == .connected { () } else { nil }
        }
        // The advertisement stays away, but the connection shows that the peer is present.
        let mark = UUID().uuidString
        bob.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
        try await bob.event { kind -> Void? in
            if case .discoveryChanged(let status) = kind, status.error == mark { () } else { nil }
        }
        await loop.advanceTime(by: TimeAmount(EarshotLimits.lossGrace) + .seconds(1))
        let connected = try await bob.node.peer("alice")
        #expect(connected.presence == .nearby && connected.state == .connected)
        await alice.stop()
        try await bob.event { kind -> Void? in
            if case .sessionChanged(let session, ended: false) = kind, session.members.first?.state != .connected { () } else { nil }
        }
        try await eventually("the connection is gone") { try await bob.node.peer("alice").protection == nil }
        #expect(try await bob.node.peer("alice").presence == .nearby)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.lossGrace))
        let lost = try await bob.event { if case .peerLost(let peer) = $0 { peer } else { nil } }
        #expect(lost.id == alice.node.id)
        #expect(try await bob.node.peer("alice").presence == .away)
        await bob.stop()
        await loop.end()
    }
}
