import EarshotWire
import Foundation
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension Node {
    /// Adds the maximum number of kept peers.
    fileprivate func know(_ count: Int) {
        for number in 0..<count {
            let id = PeerID(subjectPublicKeyInfo: [3, UInt8(number >> 8), UInt8(number & 0xFF)])
            let stored = StoredPeer(
                id: id, name: "k\(number)", trust: .unknown, isTLSPinned: true, firstSeen: self.now, lastSeen: self.now)
            self.core.load([stored], [])
            self.core.publishPeer(id)
        }
    }

    fileprivate var knownCounts: [Int] {
        [self.core.records.count, self.core.names.count, self.core.discovered.count, self.core.transfers.endedPeers]
    }
}

/// Peers that only the settings admit leave nothing behind, and known peers take no room from discovered ones.
@Suite(.timeLimit(.minutes(1))) struct NodeUndecidedTests {
    private func rows(_ bob: TestNode) async throws -> [PeerID] { try await Store(directory: bob.directory).load().peers.map(\.id) }

    @Test func aRowThatNobodyDecidedAboutGoesWithItsSession() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        for number in 0..<5 {
            let (raw, session) = try await RawPeer.joined(to: bob, name: "m\(number)")
            #expect(await bob.node.peers().map(\.id) == [raw.id])
            try await raw.send(.sessionEnd(session))
            try await raw.roundTrip()
            #expect(await bob.node.record(raw.id)?.standing.stored == nil)
            await raw.close()
            try await eventually("it is gone") { await bob.node.knownCounts == [0, 0, 0, 0] }
        }
        // Also if this side ends it.
        let (raw, session) = try await RawPeer.joined(to: bob)
        try await bob.node.leave(session)
        await raw.close()
        try await eventually("it is gone") { await bob.node.knownCounts == [0, 0, 0, 0] }
        // Its use of TLS is still remembered, as for a stranger.
        #expect(await bob.node.transport.tlsPins.contains(raw.id))
        await bob.stop()
        #expect(try await self.rows(bob) == [])
    }

    @Test func aSessionKeepsItOverARestartAndNoLonger() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let (raw, session) = try await RawPeer.joined(to: bob)
        await raw.close()
        await bob.stop()
        #expect(try await self.rows(bob) == [raw.id])
        let again = try await TestNode("bob", in: bob.state)
        #expect(await again.node.peers().map(\.name) == ["mallory"])
        let back = try await raw.attached(to: again, in: session)
        try await back.send(.sessionEnd(session))
        try await back.roundTrip()
        await back.close()
        await again.stop()
        #expect(try await self.rows(bob) == [])
    }

    /// The data may be left from a crash, or from another key of this machine.
    @Test func whatIsLeftGoesAtTheStart() async throws {
        let bob = try await TestNode("bob")
        func peer(_ number: UInt8, isDecided: Bool) -> StoredPeer {
            StoredPeer(
                id: peerID(number), name: "p", trust: .unknown, isTLSPinned: true, isDecided: isDecided, firstSeen: Date(),
                lastSeen: Date())
        }
        try await bob.node.store.apply([
            .putPeer(peer(1, isDecided: false)), .putPeer(peer(2, isDecided: true)), .putPeer(peer(3, isDecided: false)),
            .putPeer(peer(4, isDecided: false)),
            .putSession(StoredSession(id: .random(), members: [peerID(99), peerID(3)], createdAt: Date())),
            .putSession(StoredSession(id: .random(), members: [bob.node.id, peerID(4)], createdAt: Date())),
        ])
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state)
        #expect(Set(await again.node.peers().map(\.id)) == [peerID(2), peerID(4)])
        await again.stop()
        #expect(Set(try await self.rows(bob)) == [peerID(2), peerID(4)])
        #expect(try await Store(directory: bob.directory).load().sessions.map(\.members) == [[bob.node.id, peerID(4)]])
    }

    /// A peer that the user has decided about stays.
    @Test(arguments: ["accepted", "invited", "trusted", "mismatched"]) func whoAPersonDecidedAboutStays(how: String) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = how == "accepted" || how == "invited" ? .ask : .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await raw.roundTrip()
        let session: SessionID
        switch how {
        case "accepted":
            let id = InvitationID.random()
            try await raw.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
            _ = try await bob.invitation()
            session = try #require(try await bob.node.respond(to: id, .accept, always: false).sessionID)
        case "invited":
            let sent = try await bob.node.invite(raw.id.description, context: [], timeout: .seconds(60))
            // Crossing invitations: the settings accept the peer's because the user has invited it.
            _ = try await raw.next { if case .invite(let invite) = $0 { invite } else { nil } }
            session = .random()
            try await raw.send(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))))
            #expect(try await bob.node.outcome(of: sent.id).state == .accepted)
        default:
            session = try await raw.join()
            _ = try await bob.node.setTrust(.trusted, for: raw.id.description)
            if how == "mismatched" { _ = try await bob.node.setTrust(.unknown, for: raw.id.description) }
        }
        try await raw.send(.sessionEnd(session))
        try await raw.roundTrip()
        await raw.close()
        #expect(await bob.node.sessions().isEmpty)
        await bob.stop()
        #expect(try await self.rows(bob) == [raw.id])
    }

    @Test func whatIsKnownTakesNoRoomFromWhatIsDiscovered() async throws {
        let bob = try await TestNode("bob")
        await bob.node.know(EarshotLimits.discoveredPeers + 100)
        func sighted(_ number: Int) -> DiscoveryEvent {
            .found(
                .avahi, bob.sighting(id: PeerID(subjectPublicKeyInfo: [4, UInt8(number >> 8), UInt8(number & 0xFF)]), name: "d\(number)"))
        }
        for number in 0...EarshotLimits.discoveredPeers { bob.discovery.tell(sighted(number)) }
        _ = try await bob.told()
        #expect(await bob.node.peers().count { $0.name.hasPrefix("d") } == EarshotLimits.discoveredPeers)
        #expect(await bob.node.peers().count == 2 * EarshotLimits.discoveredPeers + 100)
        // A peer that the user decides about makes room.
        let known = try await bob.node.peer("d7").id
        _ = try await bob.node.setTrust(.trusted, for: known.description)
        bob.discovery.tell(sighted(EarshotLimits.discoveredPeers))
        _ = try await bob.told()
        #expect(await bob.node.peers().contains { $0.name == "d\(EarshotLimits.discoveredPeers)" })
        await bob.stop()
    }
}
