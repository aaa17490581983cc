import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension TestNode {
    /// Applies a change of the configuration like a reload, and returns the new discovery if one was made.
    @discardableResult
    func reconfigure(
        _ change: (inout Node.Configuration) -> Void
    ) async throws -> ScriptedDiscovery? {
        var configuration = await self.node.configuration
        change(&configuration)
        var made: ScriptedDiscovery?
        try await self.node.apply(configuration) {
            made = ScriptedDiscovery()
            return made
        }
        return made
    }
}

@Suite struct NodeSettingsTests {
    /// Peers in a session, which have a connection, learn the name only from a new connection.
    @Test func aNewNameIsProvenToThoseInASession() async throws {
        let (alice, bob) = try await pair()
        let name = try DisplayName("anna")
        try await alice.reconfigure { $0.displayName = name }
        try await bob.event { kind -> Void? in
            guard case .peerChanged(let peer) = kind, peer.id == alice.node.id, peer.state == .connected else { return nil }
            return peer.name == "anna" ? () : nil
        }
        #expect(await alice.node.sessions().map(\.id) == bob.node.sessions().map(\.id))
        #expect(try await bob.send("hello", to: alice).recipients.first?.status == .delivered)
        await alice.stop()
        await bob.stop()
    }

    /// A stream would be lost with its connection.
    @Test func aNewNameLeavesStreamsAlone() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("who")
        async let sent = alice.open("x", to: bob, body)
        let content = try await bob.node.acceptStream(try await bob.streamWaits().id)
        let name = try DisplayName("anna")
        try await alice.reconfigure { $0.displayName = name }
        body.feed.yield(ByteBuffer(string: "le"))
        body.feed.finish()
        #expect(try await content.all() == "whole")
        try await content.finish()
        #expect(try await sent.error == nil)
        await alice.stop()
        await bob.stop()
    }

    @Test func aNewNameIsAdvertisedAndSaid() async throws {
        let (alice, bob) = try await pair(inSession: false)
        // The first discovery is running.
        try await alice.found(bob)
        let name = try DisplayName("anna")
        let second = try #require(
            try await alice.reconfigure {
                $0.displayName = name
                $0.discoveryInfo = ["room": "attic"]
            })
        // The next discovery starts when the first has ended.
        try await alice.event(since: 0) {
            if case .discoveryChanged(DiscoveryStatus(backend: .embedded, state: .running)) = $0 { () } else { nil }
        }
        second.tell(.advertised(instanceName: "anna"))
        try await eventually("the new name is out") { await alice.node.status().instanceName == "anna" }
        #expect(second.advertised?.instanceName == "anna")
        #expect(second.advertised?.port == alice.port)
        #expect(second.advertised?.txt.contains(TXTPair(key: "room", value: Array("attic".utf8))) == true)
        #expect(await alice.node.status().name == name)
        // The sightings of the first discovery stay valid, and the second one repeats them.
        second.tell(.found(.embedded, bob.sighting()))
        try await agree(alice, bob)
        #expect(await bob.node.peers().first { $0.id == alice.node.id }?.name == "anna")
    }

    @Test func discoveryGoesOnWhereNothingOfItChanged() async throws {
        let alice = try await TestNode("alice")
        #expect(try await alice.reconfigure { $0.fromUnknown = .reject } == nil)
        #expect(try await alice.reconfigure { $0.browse = false } != nil)
        await alice.stop()
    }

    @Test func discoveryIsSwitchedOff() async throws {
        let (alice, bob) = try await pair(inSession: false)
        try await alice.found(bob)
        var configuration = await alice.node.configuration
        configuration.advertise = false
        try await alice.node.apply(configuration, restartsDiscovery: true) { nil }
        try await alice.event { if case .discoveryChanged(DiscoveryStatus(backend: .none, state: .off)) = $0 { () } else { nil } }
        // Switched on again.
        let second = try #require(try await alice.reconfigure { $0.advertise = true })
        try await eventually("it advertises again") { second.advertised != nil }
        await alice.stop()
    }

    @Test func manyChangesLeaveTheLastOne() async throws {
        let alice = try await TestNode("alice")
        var last: ScriptedDiscovery?
        for number in 1...50 {
            let name = try DisplayName("alice\(number)")
            last = try await alice.reconfigure { $0.displayName = name }
        }
        let discovery = try #require(last)
        try await eventually("the last name is out") { discovery.advertised?.instanceName == "alice50" }
        await alice.stop()
    }

    @Test func configuredPeersComeAndGo() async throws {
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob")
        let peer = try ConfiguredPeer("\(bob.node.id)@127.0.0.1:\(bob.port)")
        try await alice.reconfigure { $0.configuredPeers = [peer] }
        try await alice.found(bob)
        #expect(await alice.node.record(bob.node.id)?.reach.configured == [peer])
        try await eventually("it is reached") { await alice.node.connection(to: bob.node.id) != nil }
        try await alice.reconfigure { $0.configuredPeers = [] }
        #expect(await (alice.node.record(bob.node.id)?.reach.configured ?? []).isEmpty)
        #expect(await alice.node.core.configuredDials.count == 0)
    }

    @Test func policiesAndLimitsCountAtOnce() async throws {
        let (alice, bob) = try await pair(inSession: false)
        try await bob.reconfigure { $0.fromUnknown = .reject }
        let refused = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await alice.node.outcome(of: refused.id).state == .declined)
        try await bob.reconfigure {
            $0.fromUnknown = .accept
            $0.inboxLimit = 1
            $0.quota = 4 * fileRoom(11) - 1
        }
        let accepted = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await alice.node.outcome(of: accepted.id).state == .accepted)
        #expect(try await alice.send("one", to: bob).recipients.first?.status == .delivered)
        #expect(try await alice.send("two", to: bob).recipients.first?.error == .inboxFull)
        let path = "\(alice.directory)/large"
        try Data(count: 11).write(to: URL(fileURLWithPath: path))
        let row = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first)
        let end = try await alice.event { if case .resourceFinished(let end) = $0, end.id == row.id { end } else { nil } }
        #expect(end.error == .noSpace)
    }

    @Test func wrongOnesChangeNothing() async throws {
        let alice = try await TestNode("alice")
        let name = try DisplayName("anna")
        await #expect(throws: EarshotError.self) {
            try await alice.reconfigure {
                $0.displayName = name
                $0.discoveryInfo = ["id": "x"]
            }
        }
        #expect(await alice.node.status().name.description == "alice")
        #expect(await alice.node.configuration.discoveryInfo.isEmpty)
    }

    @Test func whatIsBoundStays() async throws {
        let alice = try await TestNode("alice")
        let other = try ServiceType("other")
        try await alice.reconfigure {
            $0.port = 1
            $0.serviceType = other
            $0.stateDirectory = "/elsewhere"
        }
        let status = await alice.node.status()
        #expect(status.port == alice.port)
        #expect(status.serviceType.description == "earshot")
    }
}
