import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// Which peer a name means on a node: what others advertise, and what members call themselves, takes no name from a peer.
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

    /// An id that begins as the name of a peer that is trusted.
    private static let forged = "RASPBERRYPI" + String(repeating: "A", count: PeerID.textLength - 11)

    @Test(arguments: ["raspberrypi", "RASPBERRYPI"]) func anAdvertisedIDTakesNoName(name: String) async throws {
        let id = try #require(PeerID(Self.forged))
        let (alice, pi) = (try await TestNode("alice"), try await TestNode(name) { $0.fromUnknown = .accept })
        alice.discovery.tell(.found(.avahi, alice.sighting(id: id, name: "mallory", port: 9)))
        _ = try await self.row(alice) { $0.id == id }
        // No peer is called so yet: what begins so is named in the error, and means no peer.
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
        // The beginning of an id that is proven means it.
        #expect(try await alice.node.peer(String(pi.node.id.description.prefix(PeerID.shortestPrefix)).lowercased()).id == pi.node.id)
        await alice.stop()
    }

    /// So many ids that are only advertised are named where no peer is called what they begin with.
    @Test func advertisedIDsNamed() async throws {
        let alice = try await TestNode("alice")
        let start = String(Self.forged.prefix(PeerID.shortestPrefix))
        var ids: [String] = []
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ".prefix(EarshotLimits.advertisedIDsNamed + 1) {
            let text = start + String(repeating: letter, count: PeerID.textLength - start.count - 1) + "A"
            let id = try #require(PeerID(text))
            alice.discovery.tell(.found(.avahi, alice.sighting(id: id, name: "mallory \(letter)", port: 9)))
            _ = try await self.row(alice) { $0.id == id }
            ids.append(text)
            let error = try #require(try await self.code(alice, start))
            #expect(error.code == .unknownPeer)
            #expect(ids.filter(error.message.contains) == Array(ids.prefix(EarshotLimits.advertisedIDsNamed)))
        }
        #expect(ids.count == EarshotLimits.advertisedIDsNamed + 1)
        await alice.stop()
    }

    /// What an advertisement says of a peer that is in the settings by its id, or was trusted by it, is that peer's own id all the same.
    @Test func idsOfSettingsAndDecisionsNeedNoProof() async throws {
        let (first, second) = (peerID(1), peerID(2))
        let configured = try ConfiguredPeer("\(first)@127.0.0.1:1")
        let alice = try await TestNode("alice") { $0.configuredPeers = [configured] }
        _ = try await alice.node.setTrust(.trusted, for: second.description)
        _ = try await self.row(alice) { $0.id == first }
        for id in [first, second] {
            #expect(try await alice.node.peer(String(id.description.prefix(PeerID.shortestPrefix))).id == id)
        }
        await alice.stop()
    }

    /// A member that takes the name of another one that is absent: the name means neither, both are told anew, and that ends again.
    @Test func twoMembersOfOneNameAreAmbiguous() async throws {
        let (alice, bob) = try await pair()
        let mallory = try await TestNode("bob") { $0.fromUnknown = .accept }
        await bob.stop()
        alice.sees(mallory)
        try await alice.found(mallory)
        #expect(try await alice.node.peer("bob").id == bob.node.id, "never a stranger, though it is away")
        _ = try await alice.node.invite(mallory.node.id.description, context: [], timeout: .seconds(60))
        try await alice.connected(to: mallory)
        for _ in 0..<2 {
            let error = try #require(try await self.code(alice, "bob"))
            #expect(error.code == .ambiguousPeer)
            #expect(Set(error.candidates.map(\.id)) == [bob.node.id, mallory.node.id])
        }
        let rows = await alice.node.peers()
        #expect(rows.first { $0.id == bob.node.id }?.nameConflict == mallory.node.id)
        #expect(rows.first { $0.id == mallory.node.id }?.nameConflict == bob.node.id)
        let events = alice.node.events.subscribe(since: nil)
        // What is left of it when one of the two is blocked means the other; both are told anew.
        _ = try await alice.node.setTrust(.blocked, for: mallory.node.id.description)
        #expect(try await alice.node.peer("bob").id == bob.node.id)
        for await event in events {
            if case .peerChanged(let peer) = event.kind, peer.id == bob.node.id, peer.nameConflict == nil { break }
        }
        await alice.stop()
        await mallory.stop()
    }

    @Test func itIsAmbiguousAfterARestartToo() async throws {
        let state = try StateDirectory()
        do {
            let store = try Store(directory: state.path)
            let date = Date(timeIntervalSince1970: 1_700_000_000)
            try await store.apply(
                [1, 2].map {
                    .putPeer(
                        StoredPeer(id: peerID($0), name: "bob", trust: .trusted, spokenTLS: true, firstSeen: date, lastSeen: date))
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
