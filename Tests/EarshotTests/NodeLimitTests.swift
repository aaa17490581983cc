import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The node's own limits, each at its edge. Strangers cost a key each, and keys are free.
@Suite(.timeLimit(.minutes(2))) struct NodeLimitTests {
    /// A node whose time a test moves, and that rejects what strangers ask.
    private func bob(_ loop: NIOAsyncTestingEventLoop) async throws -> TestNode {
        try await TestNode("bob") {
            $0.timers = Timers(on: loop)
            $0.fromUnknown = .reject
        }
    }

    private func stranger(to bob: TestNode) async throws -> RawPeer {
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await raw.roundTrip()
        return raw
    }

    @Test func idleConnections() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.bob(loop)
        let alice = try await TestNode("alice")
        bob.sees(alice)
        alice.sees(bob)
        try await alice.found(bob)
        // One that is needed, older than all strangers: it never gives way.
        let asked = try await bob.node.invite(alice.node.id.description, context: [], timeout: .seconds(60))
        let invitation = try await alice.invitation()
        _ = try await alice.node.respond(to: invitation.id, .accept, always: false)
        #expect(try await bob.node.decided(asked.id).state == .accepted)

        var strangers: [RawPeer] = []
        for _ in 0..<EarshotLimits.idleConnections { strangers.append(try await self.stranger(to: bob)) }
        for stranger in strangers.prefix(2) { try await stranger.roundTrip() }
        #expect(await bob.node.status().counts.connections == EarshotLimits.idleConnections + 1)
        strangers.append(try await self.stranger(to: bob))
        #expect(await strangers[0].refusal() == nil, "the oldest gives way, in order")
        try await strangers[1].roundTrip()
        try await eventually("the rest stays") { await bob.node.status().counts.connections == EarshotLimits.idleConnections + 1 }
        #expect(try await alice.send("still here", to: bob).recipients.map(\.status) == [.delivered])
        for stranger in strangers { await stranger.close() }
        await alice.stop()
        await bob.stop()
        await loop.shutdownGracefully()
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
        await loop.shutdownGracefully()
    }

    @Test func decidedInvitations() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.bob(loop)
        let stranger = try await self.stranger(to: bob)
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
        await loop.shutdownGracefully()
    }

    /// Whoever we deal with has the grace of one whose advertisement went: a blip is no loss.
    @Test func aLostConnectionOfASessionHasTheSameGrace() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (alice, bob) = try await pair(configureBob: { $0.timers = Timers(on: loop) })
        bob.discovery.tell(.reset(.embedded))
        try await bob.event { kind -> Void? in
            if case .sessionChanged(let session, ended: false) = kind, session.members.first?.state == .connected { () } else { nil }
        }
        // The advertisement is gone for good; the connection speaks for the peer.
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
        await loop.shutdownGracefully()
    }
}
