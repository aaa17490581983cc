import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import NIOPosix
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

@Suite(.timeLimit(.minutes(1))) struct NodeDiscoveryTests {
    /// Waits until the node has handled all events of discovery.
    private func settle(_ node: TestNode) async throws {
        let mark = UUID().uuidString
        node.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
        try await node.event { kind -> Void? in
            if case .discoveryChanged(let status) = kind, status.error == mark { () } else { nil }
        }
    }

    private func kinds(_ node: TestNode, of id: PeerID) async throws -> [String] {
        let mark = UUID().uuidString
        node.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
        var kinds: [String] = []
        for await event in node.node.events.subscribe(since: 0) {
            switch event.kind {
            case .peerFound(let peer) where peer.id == id: kinds.append("found")
            case .peerChanged(let peer) where peer.id == id: kinds.append("changed")
            case .peerLost(let peer) where peer.id == id: kinds.append("lost")
            case .discoveryChanged(let status) where status.error == mark: return kinds
            default: break
            }
        }
        return kinds
    }

    private func sighting(
        _ id: PeerID, name: String = "bob", interface: Int32 = 1, overIPv6: Bool = false, addresses: [String] = ["10.9.8.7"],
        port: UInt16 = 9, loopback: Bool = false
    ) -> Sighting {
        Sighting(
            key: Sighting.Key(instanceName: name, interfaceIndex: interface, overIPv6: overIPv6), interfaceName: "eth\(interface)",
            isLoopback: loopback, addresses: addresses, port: port,
            txt: [TXTPair(key: "id", value: Array(id.description.utf8)), TXTPair(key: "name", value: Array(name.utf8))])
    }

    @Test func manySightingsAreOneRow() async throws {
        let alice = try await TestNode("alice")
        let id = peerID(7)
        alice.discovery.tell(.found(.avahi, self.sighting(id, addresses: ["10.9.8.7"])))
        alice.discovery.tell(.found(.avahi, self.sighting(id, overIPv6: true, addresses: ["fe80::7"])))
        alice.discovery.tell(.found(.embedded, self.sighting(id, interface: 2, addresses: ["10.9.8.7", "10.5.5.5"])))
        try await self.settle(alice)
        let peers = await alice.node.peers()
        #expect(peers.map(\.id) == [id])
        #expect(peers.first?.addresses == ["10.9.8.7:9", "10.5.5.5:9", "[fe80::7%eth1]:9"])
        #expect(peers.first?.sources == [.avahi, .embedded])
        #expect(try await self.kinds(alice, of: id) == ["found", "changed", "changed"])
        await alice.stop()
    }

    /// A host that repeatedly advertises a peer's id causes only a bounded row and bounded events.
    @Test func ofOnePeerSoManySightingsAndAddressesAreKept() async throws {
        let alice = try await TestNode("alice")
        for number in 0...EarshotLimits.sightingsPerPeer {
            let addresses = (0..<3).map { "10.0.\(number).\($0)" }
            alice.discovery.tell(.found(.avahi, self.sighting(peerID(1), name: "p\(number)", addresses: addresses)))
            guard number >= EarshotLimits.sightingsPerPeer - 1 else { continue }
            try await self.settle(alice)
            let kept = min(number + 1, EarshotLimits.sightingsPerPeer)
            #expect(await alice.node.record(peerID(1))?.presence.sightings.count == kept)
            #expect(await alice.node.core.discovered.sightings == number + 1)
            #expect(await alice.node.peers().first?.addresses.count == min(3 * kept, EarshotLimits.addressesPerPeer))
        }
        let row = try #require(await alice.node.peers().first)
        // The oldest one was evicted.
        #expect(row.addresses.contains("10.0.1.0:9") && !row.addresses.contains("10.0.0.0:9"), "\(row.addresses)")
        // Each sighting has its share of the addresses, including the latest.
        #expect(row.addresses.contains("10.0.\(EarshotLimits.sightingsPerPeer).1:9"), "\(row.addresses)")
        #expect(Node.eventCost(of: row) > 512 + 64 * row.addresses.count)
        // The peer is lost when all sightings are.
        for number in 0...EarshotLimits.sightingsPerPeer {
            alice.discovery.tell(.lost(.avahi, self.sighting(peerID(1), name: "p\(number)").key))
        }
        try await self.settle(alice)
        #expect(await alice.node.core.discovered.sightings == 0)
        await alice.stop()
    }

    /// Listens, and counts connections.
    private func listener(_ count: Box<Int>) async throws -> any Channel { try await self.listener { count.withLock { $0 += 1 } } }

    private func listener(accepted: @escaping @Sendable () -> Void) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                accepted()
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    @Test func forgedAdvertisementsWriteNothingAndDialNobody() async throws {
        let (alice, bob) = try await pair()
        let count = Box(0)
        let trap = try await self.listener(count)
        let port = UInt16(try #require(trap.localAddress?.port))
        let before = bob.storeBytes()
        let honest = peerID(7)
        bob.discovery.tell(.found(.avahi, self.sighting(honest, name: "carol")))
        for number in 0..<10_000 {
            let id = PeerID(subjectPublicKeyInfo: [1, UInt8(number >> 8), UInt8(number & 0xFF)])
            // Their interfaces distinguish them. All have the victim's name.
            bob.discovery.tell(
                .found(
                    .avahi,
                    self.sighting(
                        id, name: "alice", interface: Int32(number + 10), addresses: ["127.0.0.1"], port: port, loopback: true)))
        }
        // A connected peer, advertised at another place and under another name.
        bob.discovery.tell(
            .found(.avahi, self.sighting(alice.node.id, name: "victim", interface: 3, addresses: ["127.0.0.1"], port: port, loopback: true))
        )
        try await self.settle(bob)
        #expect(bob.storeBytes() == before)
        #expect(count.value == 0)
        // No peer was evicted, and the known one does not count.
        #expect(await bob.node.peers().count == EarshotLimits.discoveredPeers + 1)
        #expect(try await bob.node.peer("carol").id == honest)
        #expect(try await bob.node.peer("alice").id == alice.node.id, "a name of thousands still means the one that was agreed with")
        #expect(try await bob.node.peer(alice.node.id.description).name == "alice", "the proven name stands")
        #expect(try await alice.send("still here", to: bob).recipients.map(\.status) == [.delivered])
        await alice.stop()
        await bob.stop()
        try await trap.close()
    }

    /// A record from another link with a loopback address is false. One from loopback is dialled, which shows that the trap works.
    @Test func aRecordFromAnotherLinkNeverLeadsToLoopback() async throws {
        let (alice, bob) = try await pair()
        let count = Box(0)
        let trap = try await self.listener(count)
        let port = UInt16(try #require(trap.localAddress?.port))
        await alice.stop()
        bob.discovery.tell(.reset(.embedded))
        let id = alice.node.id
        for host in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.1", "224.0.0.1"] {
            bob.discovery.tell(.found(.avahi, self.sighting(id, name: "alice", interface: 4, addresses: [host], port: port)))
        }
        try await self.settle(bob)
        #expect(count.value == 0)
        bob.discovery.tell(.found(.embedded, self.sighting(id, name: "alice", addresses: ["127.0.0.1"], port: port, loopback: true)))
        try await eventually("what is permitted is dialled") { count.value > 0 }
        await bob.stop()
        try await trap.close()
    }

    /// A stop ends a dial to a silent peer, and does not wait for the end of the handshake time.
    @Test func aStopEndsADial() async throws {
        let (alice, bob) = try await pair()
        await alice.stop()
        bob.discovery.tell(.reset(.embedded))
        // The node stops as soon as it has dialled, on the event loops alone, because the test itself may be suspended for longer than a
        // handshake.
        let trap = try await self.listener { bob.cancel() }
        let port = UInt16(try #require(trap.localAddress?.port))
        bob.discovery.tell(
            .found(.embedded, self.sighting(alice.node.id, name: "alice", addresses: ["127.0.0.1"], port: port, loopback: true)))
        await bob.ended()
        #expect(await bob.node.transport.handshakeFailures.byCode[.timedOut] == nil, "the dial was ended, not waited for")
        try await trap.close()
    }

    /// Another machine now has the address. This is not an answer from the peer, which is found elsewhere before the invitation expires.
    @Test func anAddressThatAnotherMachineHasNowIsOneToTryLater() async throws {
        let (alice, bob, carol) = try await (TestNode("alice"), TestNode("bob"), TestNode("carol"))
        alice.sees(carol)
        try await alice.found(carol)
        alice.discovery.tell(.found(.embedded, bob.sighting(port: carol.port)))
        try await alice.found(bob)
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
        try await eventually("carol has answered") { await alice.node.lastDialError(of: bob.node.id) != nil }
        #expect(await alice.node.lastDialError(of: bob.node.id) == .unavailable)
        let words = await alice.node.lastDialMessage(of: bob.node.id)
        #expect(words == "another machine, carol (\(carol.node.id)), answers at 127.0.0.1:\(carol.port)")
        #expect(try await alice.node.invitation(sent.id).state == .pending)
        alice.sees(bob)
        let received = try await bob.invitation()
        _ = try await bob.node.respond(to: received.id, .accept, always: false)
        #expect(try await alice.node.outcome(of: sent.id).state == .accepted)
        #expect(await carol.node.invitations(all: true).isEmpty)
        for node in [alice, bob, carol] { await node.stop() }
    }
}

@Suite struct RenamedPeerTests {
    @Test func theNewNameStaysThoughTheOldInstanceIsReportedAgain() async throws {
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob")
        let old = bob.sighting()
        let new = bob.sighting(name: "bert")
        for sighting in [old, new, old] { alice.discovery.tell(.found(.embedded, sighting)) }
        alice.discovery.tell(.advertised(instanceName: "seen"))
        try await eventually("all is seen") { await alice.node.status().instanceName == "seen" }
        #expect(await alice.node.peers().map(\.name) == ["bert"])
    }

    @Test func theNameIsOneThatIsStillSeen() async throws {
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob")
        let old = bob.sighting()
        let new = bob.sighting(name: "bert")
        // From a cache, which may report both in any order.
        for sighting in [new, old] { alice.discovery.tell(.found(.embedded, sighting)) }
        alice.discovery.tell(.lost(.embedded, old.key))
        try await alice.event { if case .peerChanged(let peer) = $0, peer.name == "bert" { () } else { nil } }
    }
}
