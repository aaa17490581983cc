import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// The effects of the end of a session, a connection, or the trust in a peer.
@Suite(.timeLimit(.minutes(10))) struct NodeEndingTests {
    private func open(_ session: SessionID) throws -> Frame {
        .stream(.open(StreamOpen(session: session, id: .random(), name: try StreamName("x"))))
    }

    /// Repeated sessions on one connection, each with as many open items as allowed. Every session works like the first.
    @Test func everySessionHasAllPlaces() async throws {
        let (raw, bob, first) = try await RawPeer.joined()
        // The peer may now request any number of sessions.
        _ = try await bob.node.setTrust(.trusted, for: raw.id.description)
        var session = first
        for round in 0..<10 {
            for _ in 0..<EarshotLimits.incomingTransfers { try await raw.send(raw.offer("f", size: 10, in: session)) }
            for _ in 0..<EarshotLimits.incomingTransfers {
                guard case .resource(.accept) = try await raw.resourceAnswer() else {
                    Issue.record("refused in round \(round)")
                    return
                }
            }
            for _ in 0..<EarshotLimits.waitingStreams { try await raw.send(try self.open(session)) }
            try await raw.roundTrip()
            #expect(await bob.node.openStreams().count { $0.state == .opening } == EarshotLimits.waitingStreams)
            try await raw.send(.sessionEnd(session))
            // The jobs of the session end.
            try await eventually("nothing runs") { await bob.node.runningJobs(of: raw.id) == 0 }
            #expect(await bob.node.resources().allSatisfy { $0.state.isFinal })
            #expect(await bob.node.openStreams().allSatisfy { $0.state == .closed })
            session = try await raw.join()
        }
        await raw.close()
        await bob.stop()
    }

    /// The same when this side leaves.
    @Test func leavingGivesTheirPlacesBack() async throws {
        let (raw, bob, first) = try await RawPeer.joined { $0.acceptResources = .ask }
        var session = first
        for _ in 0..<4 {
            for _ in 0..<EarshotLimits.waitingOffers { try await raw.send(raw.offer("f", size: 10, in: session)) }
            try await raw.roundTrip()
            #expect(await bob.node.resources().count { $0.state == .offered } == EarshotLimits.waitingOffers)
            try await bob.node.leave(session)
            _ = try await raw.next { $0 == .sessionEnd(session) ? () : nil }
            #expect(await bob.node.resources().allSatisfy { $0.state.isFinal })
            session = try await raw.join()
        }
        await raw.close()
        await bob.stop()
    }

    // MARK: Floods

    /// Offers that are immediately withdrawn, as fast as they can be sent. They cause rows and events only up to a limit, do not affect
    /// others, and leave nothing in the store.
    @Test func offersThatAreTakenBack() async throws {
        // Time is stopped, so that nothing expires, however busy the machine is.
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await RawPeer.joined {
            $0.acceptResources = .ask
            $0.timers = Timers(on: loop)
        }
        let other = try await RawPeer(to: bob, name: "carol")
        try await other.prove()
        let friends = try await other.join()
        for number in 0..<4 as Range<UInt64> {
            let id = ResourceID(high: 7, low: number)
            try await other.send(other.offer("kept", size: 1, in: friends, id: id))
            try await eventually("it is there") { (try? await bob.node.resource(id)) != nil }
            _ = try await bob.node.respond(to: id, .refuse)
        }
        var reader = bob.node.events.subscribe()
        let count = 5000
        var bytes = ByteBuffer()
        for _ in 0..<count {
            let id = ResourceID.random()
            try FrameEncoder.encode(raw.offer("f", size: 10, in: session, id: id), into: &bytes)
            let refusal = Refusal(code: .cancelled, explanation: "")
            try FrameEncoder.encode(.resource(.cancel(ResourceRefuse(id: id, refusal: refusal))), into: &bytes)
        }
        try await raw.channel.writeAndFlush(bytes)
        try await raw.roundTrip()
        let told = reader.more(upTo: 20_000).count
        // An offer and its end each, and a few more if a quarter of a second has passed.
        #expect((EarshotLimits.vainOffers..<2 * EarshotLimits.vainOffers + 200).contains(told), "\(told) events")
        let rows = await bob.node.resources()
        #expect(rows.count <= EarshotLimits.vainOffers + 100 && rows.count { $0.name == "kept" } == 4)
        #expect(rows.allSatisfy { $0.state.isFinal })
        try await eventually("its jobs have returned") { await bob.node.runningJobs(of: raw.id) == 0 }
        // The peer is told, and its offers are handled again after a pause.
        let late = ResourceID.random()
        try await raw.send(raw.offer("f", size: 10, in: session, id: late))
        let refused = try await raw.next { frame -> ResourceRefuse? in
            if case .resource(.refuse(let refuse)) = frame, refuse.id == late { refuse } else { nil }
        }
        #expect(refused.refusal.code == .busy)
        await bob.node.forgetVainOffers(of: raw.id)
        let again = ResourceID.random()
        try await raw.send(raw.offer("f", size: 10, in: session, id: again))
        try await eventually("it is offered") { (try? await bob.node.resource(again).state) == .offered }
        await raw.close()
        await other.close()
        await bob.stop()
    }

    @Test func streamsThatAreAborted() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        var reader = bob.node.events.subscribe()
        var bytes = ByteBuffer()
        for _ in 0..<5000 {
            let id = StreamID.random()
            try FrameEncoder.encode(.stream(.open(StreamOpen(session: session, id: id, name: try StreamName("x")))), into: &bytes)
            try FrameEncoder.encode(.stream(.abort(StreamRefuse(id: id, refusal: Refusal(code: .cancelled)))), into: &bytes)
        }
        try await raw.channel.writeAndFlush(bytes)
        try await raw.roundTrip()
        let told = reader.more(upTo: 20_000).count
        #expect((EarshotLimits.vainOffers..<2 * EarshotLimits.vainOffers + 200).contains(told), "\(told) events")
        #expect(await bob.node.openStreams().count <= EarshotLimits.closedStreams)
        await raw.close()
        await bob.stop()
    }
}

extension Node {
    fileprivate func runningJobs(of peer: PeerID) -> Int { self.core.transfers.count(of: peer, .incomingMover) }
}

extension Node {
    /// Simulates a pause of the peer.
    fileprivate func forgetVainOffers(of peer: PeerID) { self.core.records[peer]?.vainOffers = VainOffers() }
}
