import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// The peer that a name refers to. Advertisements and members' display names take no name away from a peer.
@Suite(.timeLimit(.minutes(1))) struct NodeNamingTests {
    private func code(_ node: TestNode, _ name: String) async throws -> EarshotError? {
        do {
            _ = try await node.node.peer(name)
            return nil
        } catch {
            return error
        }
    }

    private func row(_ node: TestNode, _ match: @escaping (Peer) -> Bool) async throws -> Peer {
        try await node.event { kind in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer), .peerLost(let peer): match(peer) ? peer : nil
            default: nil
            }
        }
    }

    /// An id that begins like the name of a trusted peer.
    private static let forged = "RASPBERRYPI" + String(repeating: "A", count: PeerID.textLength - 11)

    @Test(arguments: ["raspberrypi", "RASPBERRYPI"]) func anAdvertisedIDTakesNoName(name: String) async throws {
        let id = try #require(PeerID(Self.forged))
        let (alice, pi) = (try await TestNode("alice"), try await TestNode(name) { $0.fromUnknown = .accept })
        alice.discovery.tell(.found(.avahi, alice.sighting(id: id, name: "mallory", port: 9)))
        _ = try await self.row(alice) { $0.id == id }
        // No peer has this name yet. The error lists the peer with this prefix, but does not resolve to it.
        let unknown = try #require(try await self.code(alice, name))
        #expect(unknown.code == .unknownPeer && unknown.message.contains(Self.forged), "\(unknown)")
        #expect(try await self.code(alice, Self.forged) == nil, "a whole id is itself")
        alice.sees(pi)
        try await alice.found(pi)
        #expect(try await alice.node.peer(name).id == pi.node.id, "a stranger's name, too, is more than such an id")
        _ = try await alice.node.invite(name, context: [], timeout: .seconds(60))
        try await alice.connected(to: pi)
        #expect(try await alice.node.peer(name).id == pi.node.id)
        await pi.stop()
        #expect(try await alice.node.peer(name).id == pi.node.id, "away too")
        // A prefix of a proven id resolves to its peer.
        #expect(try await alice.node.peer(String(pi.node.id.description.prefix(PeerID.shortestPrefix)).lowercased()).id == pi.node.id)
        await alice.stop()
    }

    @Test func itIsAmbiguousAfterARestartToo() async throws {
        let state = try StateDirectory()
        do {
            let store = try Store(directory: state.path)
            let date = Date(timeIntervalSince1970: 1_700_000_000)
            try await store.apply(
                [1, 2].map {
                    .putPeer(
                        StoredPeer(id: peerID($0), name: "bob", trust: .trusted, isTLSPinned: true, firstSeen: date, lastSeen: date))
                })
        }
        let alice = try await TestNode("alice", in: state)
        #expect(try await self.code(alice, "bob")?.code == .ambiguousPeer)
        for (one, other) in [(peerID(1), peerID(2)), (peerID(2), peerID(1))] {
            #expect(try await alice.node.peer(one.description).nameConflict == other)
        }
        await alice.stop()
    }
}
