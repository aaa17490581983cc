import EarshotWire
import Foundation
import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import Earshot

/// Pinging a peer for a user: over an existing connection, over a new one, and without success.
@Suite(.timeLimit(.minutes(1))) struct NodePingTests {
    private func states(_ ping: PeerPing) -> [PeerPing.Step.Kind: PeerPing.Step.State] {
        Dictionary(ping.steps.map { ($0.kind, $0.state) }) { first, _ in first }
    }

    @Test func everyErrorOfADialBelongsToAStep() {
        let steps: [(EarshotError.Code, PeerPing.Step.Kind)] = [
            (.unavailable, .tcp), (.notConnected, .tls), (.timedOut, .tls), (.encryptionMismatch, .tls), (.downgradeDetected, .tls),
            (.identityMismatch, .key), (.serviceMismatch, .key), (.versionUnsupported, .key), (.busy, .key),
        ]
        for (code, step) in steps { #expect(PeerPing.Step.Kind(ofFailedDial: code) == step, "\(code)") }
    }

    /// The peer need not be in a session. The second ping uses the connection of the first.
    @Test func aStrangerAnswersOverANewConnectionAndThenOverThatOne() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let first = try await alice.node.ping("bob")
        #expect(first.connection == .new && (first.roundTripNanoseconds ?? 0) > 0)
        #expect(PeerPing.Step.Kind.allCases.allSatisfy { self.states(first)[$0] == ($0 == .session ? .skipped : .ok) })
        let second = try await alice.node.ping("bob")
        #expect(second.connection == .standing && second.steps.map(\.kind) == PeerPing.Step.Kind.allCases)
        #expect(await alice.node.sessions().isEmpty)
        await bob.stop()
    }

    @Test func aMemberAnswersOverItsSessionsConnection() async throws {
        let (alice, bob) = try await pair()
        let ping = try await alice.node.ping("bob")
        #expect(ping.connection == .standing && ping.steps.allSatisfy { $0.state == .ok })
        await bob.stop()
    }

    @Test func blockedAndUnknownPeersAreRefused() async throws {
        let (alice, bob) = try await pair(inSession: false)
        _ = try await alice.node.setTrust(.blocked, for: bob.node.id.description)
        await #expect { try await alice.node.ping("bob") } throws: { ($0 as? EarshotError)?.code == .forbidden }
        await #expect { try await alice.node.ping("nobody") } throws: { ($0 as? EarshotError)?.code == .unknownPeer }
    }

    /// The result names the failed step. Earlier steps are done, and later ones skipped.
    @Test func theStepThatFailsIsNamed() async throws {
        let alice = try await TestNode("alice")
        let (bob, carol) = (try await TestNode("bob"), try await TestNode("carol", serviceType: "other"))
        func failure(_ seen: Sighting, _ name: String) async throws -> (PeerPing.Step?, PeerPing) {
            alice.discovery.tell(.found(.embedded, seen))
            let id = try #require(seen.txt.first { $0.key == "id" }.map { String(decoding: $0.value, as: UTF8.self) })
            try await alice.event { kind -> Void? in
                if case .peerFound(let peer) = kind, peer.id.description == id { () } else { nil }
            }
            let ping = try await alice.node.ping(id)
            return (ping.steps.first { $0.state == .failed }, ping)
        }
        // The key at the address is bob's, not the advertised one.
        let other = try await TestNode("dave")
        let (key, _) = try await failure(bob.sighting(id: other.node.id, name: "dave"), "dave")
        #expect(key?.kind == .key && key?.code == .identityMismatch)
        let (service, _) = try await failure(carol.sighting(), "carol")
        #expect(service?.kind == .key && service?.code == .serviceMismatch)
        // Bound, but not listening, so the kernel refuses connections.
        let port = try Self.closedPort()
        let erin = try await TestNode("erin")
        let (tcp, ping) = try await failure(erin.sighting(port: port), "erin")
        #expect(tcp?.kind == .tcp && tcp?.code == .unavailable && ping.connection == nil && ping.roundTripNanoseconds == nil)
        let states = self.states(ping)
        #expect(states[.name] == .ok && states[.address] == .ok && states[.tls] == .skipped && states[.answer] == .skipped)
        #expect(ping.steps.map(\.kind) == PeerPing.Step.Kind.allCases)
    }

    @Test func aHostThatDoesNotResolveFailsInItsName() async throws {
        let peer = try ConfiguredPeer("\(peerID(1))@nowhere.invalid:47110")
        let alice = try await TestNode("alice") {
            $0.configuredPeers = [peer]
            $0.lookup = HostLookup { _ in .failure(EarshotError(.unavailable, "the name nowhere.invalid does not resolve")) }
        }
        try await eventually("the peer of the settings is known") { (try? await alice.node.peer(peerID(1).description)) != nil }
        let ping = try await alice.node.ping(peerID(1).description)
        let failed = ping.steps.first { $0.state == .failed }
        #expect(failed?.kind == .name && failed?.message == "the name nowhere.invalid does not resolve")
    }

    /// Returns a port of loopback that refuses connections.
    private static func closedPort() throws -> UInt16 {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                try #require(bind(socket, pointer, length) == 0 && getsockname(socket, pointer, &length) == 0)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
    }
}
