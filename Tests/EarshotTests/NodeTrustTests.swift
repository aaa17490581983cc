import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotCore

/// Trust that ends by itself, a machine that only knows its own, names that come back with another key.
@Suite struct NodeTrustTests {
    /// A clock on the wall, and timers that a test moves.
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

    private func change(_ node: TestNode, _ match: @escaping (Peer) -> Bool) async throws -> Peer {
        try await node.event { kind in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer), .peerLost(let peer): match(peer) ? peer : nil
            default: nil
            }
        }
    }

    @Test func trustEndsWhenItsTimeIsOver() async throws {
        let time = Time()
        let (alice, bob) = try await pair(configureAlice: { time.configure(&$0) })
        let until = time.date.value + 3600
        let trusted = try await alice.node.setTrust(.trusted, for: "bob", until: until)
        #expect(trusted.trustExpiresAt == until && trusted.trustSource == .person)
        #expect(try await alice.node.explainPolicy("bob").decisions.first { $0.action == .invite }?.reason.contains("until") == true)
        // It is looked at again and again; not a moment too soon.
        for _ in 0..<6 { await time.advance(599) }
        #expect(try await alice.node.peer("bob").trust == .trusted)
        let trusting = alice.node.events.subscribe()
        await time.advance(10)
        for await event in trusting {
            if case .peerChanged(let peer) = event.kind, peer.id == bob.node.id, peer.trust == .unknown { break }
        }
        try await eventually("its session has ended") { try await alice.node.peer("bob").state == .notConnected }
        let seen = try await alice.node.peer("bob")
        #expect(seen.trust == .unknown && seen.trustExpiresAt == nil)
        #expect(await alice.node.sessions().isEmpty)
        await alice.stop()
        await bob.stop()
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

    @Test func onlyTrustEndsAndOnlyLater() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let name = bob.node.id.description
        for (trust, until) in [
            (Trust.blocked, Date() + 60), (.unknown, Date() + 60), (.trusted, Date() - 1), (.trusted, Date() + 3651 * 86_400),
        ] {
            let error = await #expect(throws: EarshotError.self) { try await alice.node.setTrust(trust, for: name, until: until) }
            #expect(error?.code == .invalidParameter)
        }
        // For good takes the place of for a while.
        _ = try await alice.node.setTrust(.trusted, for: name, until: Date() + 60)
        #expect(try await alice.node.setTrust(.trusted, for: name).trustExpiresAt == nil)
        await alice.stop()
        await bob.stop()
    }

    @Test func trustTime() async throws {
        let time = Time()
        let alice = try await TestNode("alice") { time.configure(&$0) }
        let name = peerID(1).description
        let last = time.date.value + EarshotLimits.trustTime / .seconds(1)
        #expect(try await alice.node.setTrust(.trusted, for: name, until: last).trustExpiresAt == last)
        let error = await #expect(throws: EarshotError.self) {
            try await alice.node.setTrust(.trusted, for: name, until: last + 0.001)
        }
        #expect(error?.code == .invalidParameter)
        await alice.stop()
    }

    /// The clock is set, or the machine slept, and no timer tells: it is looked at all the same.
    @Test func trustCheck() async throws {
        let time = Time()
        let alice = try await TestNode("alice") { time.configure(&$0) }
        let id = peerID(1)
        _ = try await alice.node.setTrust(.trusted, for: id.description, until: time.date.value + 86_400)
        time.date.withLock { $0 += 86_401 }
        await time.loop.advanceTime(by: TimeAmount(EarshotLimits.trustCheck) - .nanoseconds(1))
        _ = try await alice.told()
        #expect(await alice.node.record(id)?.trust == .trusted)
        await time.loop.advanceTime(by: .nanoseconds(1))
        try await eventually("it has ended") { await alice.node.record(id)?.trust != .trusted }
        await alice.stop()
    }

    @Test func aPairedOnlyMachineShowsNoStrangersInvitation() async throws {
        let (alice, bob) = try await pair(inSession: false, configureBob: { $0.pairedOnly = true })
        let asked = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        let decided = try await alice.node.decided(asked.id)
        #expect(decided.state == .declined)
        #expect(await bob.node.invitations(all: true).isEmpty)
        let policy = try await bob.node.explainPolicy(alice.node.id.description)
        let rule = policy.decisions.first { $0.action == .invite }
        #expect(rule?.outcome == .deny && rule?.rule == "invitations.paired_only = yes")
        // A peer that it trusts, or asks itself, is another matter.
        _ = try await bob.node.setTrust(.trusted, for: alice.node.id.description)
        let again = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await alice.node.decided(again.id).state == .accepted)
        await alice.stop()
        await bob.stop()
    }

    /// A peer that is trusted by its id before it was ever here has proven nothing, until it has; that outlives a restart.
    @Test func whoeverIsTrustedByItsIDAloneHasProvenNothing() async throws {
        let (alice, bob) = (try await TestNode("alice"), try await TestNode("bob") { $0.fromUnknown = .accept })
        let id = bob.node.id.description
        let trusted = try await alice.node.setTrust(.trusted, for: id)
        #expect(trusted.trust == .trusted && !trusted.proven)
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(try await again.node.peer(id).proven == false)
        // That id is advertised under a name: nothing proves that the name is the key's.
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

    @Test func aKnownNameWithAnotherKeyIsSaid() async throws {
        let (alice, bob) = try await pair()
        let impostor = try await TestNode("bob")
        alice.sees(impostor)
        try await alice.found(impostor)
        let new = try await alice.node.peer(impostor.node.id.description)
        #expect(new.nameConflict == bob.node.id)
        let known = try await self.change(alice) { $0.id == bob.node.id && $0.nameConflict == impostor.node.id }
        #expect(known.trust == .unknown)
        // The name still means the one that is known.
        #expect(try await alice.node.peer("bob").id == bob.node.id)
        await alice.stop()
        await bob.stop()
        await impostor.stop()
    }

    /// A new key under the same name: the old sessions are over, and peers see a stranger.
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
