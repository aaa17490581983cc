import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotCore

/// Trust that expires, a node that recognises its own key, and names that return with another key.
@Suite struct NodeTrustTests {
    /// A wall clock, and timers that the test moves.
    private struct Time {
        let loop = NIOAsyncTestingEventLoop()
        let date = Box(Date(timeIntervalSince1970: 1_800_000_000))

        func configure(_ configuration: inout Node.Configuration) {
            let date = self.date
            configuration.timers = Timers(on: self.loop)
            configuration.now = { date.value }
        }

        func advance(_ seconds: Int64) async {
            self.date.withLock { $0 += Double(seconds) }
            await self.loop.advanceTime(by: .seconds(seconds))
        }
    }

    @Test func filesThatWaitEndWithTrust() async throws {
        let time = Time()
        let (alice, bob) = try await pair(inSession: false, configureAlice: { time.configure(&$0) })
        let name = bob.node.id.description
        _ = try await alice.node.setTrust(.trusted, for: name, until: time.date.value + 60)
        await bob.stop()
        let path = alice.directory + "/welcome"
        try Data("welcome".utf8).write(to: URL(fileURLWithPath: path))
        let row = try #require(try await alice.node.sendResource(to: [name], path: path, queue: true).first)
        await time.advance(59)
        #expect(try await !alice.node.resource(row.id).state.isFinal)
        await time.advance(2)
        try await eventually("it has failed") { try await alice.node.resource(row.id).error == .notConnected }
        await alice.stop()
    }

    @Test func itEndsWhileTheDaemonIsAway() async throws {
        let (alice, bob) = try await pair()
        let until = Date() + 3600
        _ = try await alice.node.setTrust(.trusted, for: "bob", until: until)
        await alice.stop()
        let soon = try await TestNode("alice", in: alice.state)
        let kept = try await soon.node.peer("bob")
        #expect(kept.trust == .trusted && abs((kept.trustExpiresAt ?? .distantPast).timeIntervalSince(until)) < 0.01)
        await soon.stop()
        let late = try await TestNode("alice", in: alice.state) { $0.now = { until + 1 } }
        try await late.event { if case .sessionChanged(_, ended: true) = $0 { () } else { nil } }
        #expect(try await late.node.peer("bob").trust == .unknown)
        #expect(await late.node.sessions().isEmpty)
        await late.stop()
        await bob.stop()
    }

    /// A peer that was trusted by its id before it ever connected has proven nothing until it does. This is kept across a restart.
    @Test func whoeverIsTrustedByItsIDAloneHasProvenNothing() async throws {
        let (alice, bob) = (try await TestNode("alice"), try await TestNode("bob") { $0.fromUnknown = .accept })
        let id = bob.node.id.description
        let trusted = try await alice.node.setTrust(.trusted, for: id)
        #expect(trusted.trust == .trusted && !trusted.proven)
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(try await again.node.peer(id).proven == false)
        // The id is advertised with a name, which does not prove that the name belongs to the key.
        again.sees(bob)
        try await again.event {
            if case .peerFound(let peer) = $0, peer.name == "bob" { () } else { nil }
        }
        let error = await #expect(throws: EarshotError.self) { try await again.node.setTrust(.unknown, for: "bob") }
        #expect(error?.code == .invalidParameter)
        #expect(error?.message.contains(id) == true)
        #expect(try await again.send("hello", to: bob).recipients.map(\.status) == [.delivered])
        #expect(try await again.node.peer("bob").proven)
        await again.stop()
        let later = try await TestNode("alice", in: alice.state)
        let kept = try await later.node.peer("bob")
        #expect(kept.proven && kept.name == "bob")
        _ = try await later.node.setTrust(.unknown, for: "bob")
        await later.stop()
        await bob.stop()
    }

    /// After a key rotation with the same name, the old sessions are over, and peers see a stranger.
    @Test func afterRotationPeersSeeANewPeer() async throws {
        let (alice, bob) = try await pair()
        let old = alice.node.id
        await alice.stop()
        _ = try Identity.replace(in: alice.directory, now: Date())
        let new = try await TestNode("alice", in: alice.state)
        #expect(new.node.id != old)
        #expect(await new.node.sessions().isEmpty)
        bob.sees(new)
        try await bob.found(new)
        let seen = try await bob.node.peer(new.node.id.description)
        #expect(seen.trust == .unknown && seen.nameConflict == old)
        await new.stop()
        await bob.stop()
    }
}
