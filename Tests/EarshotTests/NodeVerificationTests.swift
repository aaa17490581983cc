import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

@Suite(.timeLimit(.minutes(2))) struct NodeVerificationTests {
    private func change(_ node: TestNode, _ state: Verification.State, since: UInt64? = 0) async throws -> Verification {
        try await node.event(since: since) {
            if case .verificationChanged(let verification) = $0, verification.state == state { verification } else { nil }
        }
    }

    /// Both ask, alice first.
    private func compare(_ alice: TestNode, _ bob: TestNode) async throws -> (Verification, Verification) {
        #expect(try await alice.node.verify(bob.node.id.description, timeout: .seconds(300)).state == .waiting)
        #expect(try await self.change(bob, .requested).peerID == alice.node.id)
        #expect(try await bob.node.verification("alice").digits == nil)
        _ = try await bob.node.verify("alice", timeout: .seconds(300))
        return (try await self.change(alice, .ready), try await self.change(bob, .ready))
    }

    @Test func bothSidesShowTheSameDigitsOnceBothHaveAsked() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let (ours, theirs) = try await self.compare(alice, bob)
        #expect(ours.digits != nil && ours.digits == theirs.digits)
        // One attempt, then a pause: on both sides.
        for (node, peer) in [(alice, bob), (bob, alice)] {
            let error = await #expect(throws: EarshotError.self) { try await node.node.verify(peer.node.id.description) }
            #expect(error?.code == .busy)
        }
        // A person's word makes it trust, and is remembered.
        let trusted = try await alice.node.setTrust(.trusted, for: "bob")
        #expect(trusted.trust == .trusted && trusted.verified == .matched)
        #expect(try await alice.node.verification("bob").state == .matched)
        await alice.stop()
        await bob.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(try await again.node.peer("bob").verified == .matched)
        await again.stop()
    }

    @Test func whenBothAskAtOnceOneAttemptIsMade() async throws {
        let (alice, bob) = try await pair()
        async let one = alice.node.verify("bob", timeout: .seconds(300))
        async let other = bob.node.verify("alice", timeout: .seconds(300))
        _ = try await (one, other)
        let (ours, theirs) = (try await self.change(alice, .ready), try await self.change(bob, .ready))
        #expect(ours.digits != nil && ours.digits == theirs.digits)
        await alice.stop()
        await bob.stop()
    }

    /// Two persons without a connection type it at once: both machines dial, one of the two connections gives way, and neither the
    /// exchange nor what was asked for is lost with it.
    @Test(arguments: 0..<4) func whenBothDialAndAskAtOnceTheyCompare(_ round: Int) async throws {
        let (alice, bob) = try await pair(inSession: false)
        async let one = alice.node.verify(bob.node.id.description, timeout: .seconds(300))
        async let other = bob.node.verify(alice.node.id.description, timeout: .seconds(300))
        let started = try await (one, other)
        #expect(started.0.state == .waiting && started.1.state == .waiting)
        let (ours, theirs) = (try await self.change(alice, .ready), try await self.change(bob, .ready))
        #expect(ours.digits != nil && ours.digits == theirs.digits)
        #expect(try await alice.node.verification("bob").digits == ours.digits)
        await alice.stop()
        await bob.stop()
    }

    @Test func aMismatchIsRememberedAndTakesTrustBack() async throws {
        let (alice, bob) = try await pair()
        _ = try await alice.node.setTrust(.trusted, for: "bob")
        _ = try await self.compare(alice, bob)
        #expect(try await alice.node.endVerification("bob", mismatch: true).state == .mismatched)
        let seen = try await alice.node.peer("bob")
        #expect(seen.trust == .unknown && seen.verified == .mismatched && seen.state == .notConnected)
        #expect(try await self.change(bob, .mismatched).errorMessage?.contains("alice says") == true)
        let error = await #expect(throws: EarshotError.self) { try await alice.node.setTrust(.trusted, for: "bob") }
        #expect(error?.code == .forbidden)
        // A "yes" on the other side that comes after this "no" does not count; not before a person there has it forgotten.
        let late = await #expect(throws: EarshotError.self) { try await bob.node.setTrust(.trusted, for: "alice") }
        #expect(late?.code == .forbidden && late?.message.contains("says that the digits differ") == true)
        _ = try await bob.node.setTrust(.unknown, for: "alice")
        #expect(try await bob.node.verification("alice").state == .none)
        #expect(try await bob.node.setTrust(.trusted, for: "alice").verified == nil)
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state) { $0.fromUnknown = .accept }
        #expect(try await again.node.peer("bob").verified == .mismatched)
        #expect(try await again.node.explainPolicy("bob").decisions.first { $0.action == .invite }?.outcome == .ask)
        // A person may forget it.
        #expect(try await again.node.setTrust(.unknown, for: "bob").verified == nil)
        _ = try await again.node.setTrust(.trusted, for: "bob")
        await again.stop()
        await bob.stop()
    }

    @Test func itCanBeGivenUpAndTimesOut() async throws {
        let (alice, bob) = try await pair(inSession: false)
        _ = try await alice.node.verify("bob", timeout: .seconds(300))
        _ = try await self.change(bob, .requested)
        #expect(try await alice.node.endVerification("bob", mismatch: false).state == .cancelled)
        #expect(try await self.change(bob, .cancelled).errorMessage?.contains("given it up") == true)
        _ = try await alice.node.verify("bob", timeout: .milliseconds(200))
        let late = try await self.change(alice, .timedOut)
        #expect(late.error == .timedOut)
        #expect(try await self.change(bob, .timedOut).errorMessage?.contains("stopped waiting") == true)
        // Nothing was derived, so that nothing has to wait.
        let (ours, theirs) = try await self.compareAgain(alice, bob)
        #expect(ours == theirs)
        await alice.stop()
        await bob.stop()
    }

    /// Asked for a second time, it waits for the longer of the two.
    @Test func aLongerTimeExtendsWhatWaits() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let first = try #require(try await alice.node.verify("bob", timeout: .seconds(60)).expiresAt)
        let shorter = try #require(try await alice.node.verify("bob", timeout: .seconds(1)).expiresAt)
        #expect(shorter == first)
        let longer = try #require(try await alice.node.verify("bob", timeout: .seconds(300)).expiresAt)
        #expect((235...300).contains(longer.timeIntervalSince(first)))
        let told = try await alice.event {
            if case .verificationChanged(let told) = $0, told.expiresAt == longer { told } else { nil }
        }
        #expect(told.state == .waiting)
        let most = try #require(try await alice.node.verify("bob", timeout: .seconds(1_000_000)).expiresAt)
        #expect(most.timeIntervalSince(first) < EarshotLimits.comparisonTimeLimit / .seconds(1))
        await alice.stop()
        await bob.stop()
    }

    private func compareAgain(_ alice: TestNode, _ bob: TestNode) async throws -> (String?, String?) {
        _ = try await bob.node.verify("alice", timeout: .seconds(300))
        _ = try await alice.node.verify("bob", timeout: .seconds(300))
        return (try await self.change(alice, .ready).digits, try await self.change(bob, .ready).digits)
    }

    /// A caller that names no time, or none that is one, waits for so long.
    @Test(arguments: [nil, .zero] as [Duration?]) func comparisonTime(timeout: Duration?) async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await raw.roundTrip()
        #expect(try await bob.node.verify(raw.id.description, timeout: timeout).state == .waiting)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.comparisonTime) - .nanoseconds(1))
        try await raw.roundTrip()
        #expect(try await bob.node.verification(raw.id.description).state == .waiting)
        await loop.advanceTime(by: .nanoseconds(1))
        #expect(try await self.end(raw) == .timedOut)
        #expect(try await bob.node.verification(raw.id.description).state == .timedOut)
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    /// A peer that has asked and does not reveal.
    @Test func comparisonStepTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await self.begin(raw)
        try await raw.roundTrip()
        #expect(try await bob.node.verify(raw.id.description).state == .waiting)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.comparisonStepTime) - .nanoseconds(1))
        try await raw.roundTrip()
        #expect(try await bob.node.verification(raw.id.description).state == .waiting)
        await loop.advanceTime(by: .nanoseconds(1))
        #expect(try await self.end(raw) == .timedOut)
        #expect(try await bob.node.verification(raw.id.description).state == .timedOut)
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func comparisonShownTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (alice, bob) = try await pair(configureAlice: { $0.timers = Timers(on: loop) })
        _ = try await self.compare(alice, bob)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.comparisonShownTime) - .nanoseconds(1))
        _ = try await alice.told()
        #expect(try await alice.node.verification("bob").state == .ready)
        await loop.advanceTime(by: .nanoseconds(1))
        #expect(try await self.change(alice, .none).digits == nil)
        await alice.stop()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    // MARK: A peer that does not keep to it

    private func begin(_ raw: RawPeer, _ id: VerificationID = .random()) async throws -> VerificationID {
        try await raw.send(.verification(VerificationFrame(id: id, .begin(commitment: [UInt8](repeating: 1, count: 32)))))
        return id
    }

    @Test func aFalseRevealIsRefusedAndRemembered() async throws {
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let id = try await self.begin(raw)
        _ = try await self.change(bob, .requested)
        _ = try await bob.node.verify(raw.id.description)
        _ = try await raw.next { frame -> Void? in
            if case .verification(let verification) = frame, case .answer = verification.part, verification.id == id { () } else { nil }
        }
        try await raw.send(.verification(VerificationFrame(id: id, .reveal(nonce: [UInt8](repeating: 2, count: 32)))))
        #expect(await raw.refusal() == .protocolViolation)
        #expect(try await self.change(bob, .mismatched).error == .protocolViolation)
        #expect(try await bob.node.peer(raw.id.description).verified == .mismatched)
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state)
        #expect(try await again.node.peer(raw.id.description).verified == .mismatched)
        await again.stop()
    }

    @Test func nothingIsShownToWhoeverAsksAlone() async throws {
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await self.begin(raw)
        try await raw.roundTrip()
        #expect(try await bob.node.verification(raw.id.description).state == .requested)
        #expect(try await bob.node.verification(raw.id.description).digits == nil)
        // A second one while the first is under way closes the connection, and changes nothing that is kept.
        _ = try await self.begin(raw)
        #expect(await raw.refusal() == .protocolViolation)
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state)
        #expect(await again.node.peers().isEmpty)
        await again.stop()
    }

    private func end(_ raw: RawPeer) async throws -> VerificationFrame.EndReason {
        try await raw.next { frame -> VerificationFrame.EndReason? in
            if case .verification(let verification) = frame, case .end(let reason) = verification.part { reason } else { nil }
        }
    }

    private func asking(_ bob: TestNode, from source: String) async throws -> RawPeer {
        let raw = try await RawPeer(to: bob, from: source)
        try await raw.prove()
        _ = try await self.begin(raw)
        return raw
    }

    private func requests(_ bob: TestNode) async -> Set<PeerID> {
        Set(await bob.node.core.records.values.filter { $0.comparing.state == .requested }.map(\.id))
    }

    /// More strangers ask than there are places, and more than their address has: the address that holds most gives way.
    @Test func requestsAreFew() async throws {
        let bob = try await TestNode("bob")
        var raws: [RawPeer] = []
        for number in 0..<EarshotLimits.comparisonRequests {
            let raw = try await self.asking(bob, from: "127.0.2.\(1 + number / EarshotLimits.comparisonRequestsPerAddress)")
            try await raw.roundTrip()
            raws.append(raw)
        }
        #expect(await self.requests(bob) == Set(raws.map(\.id)))
        let fifth = try await self.asking(bob, from: "127.0.2.1")
        #expect(try await self.end(fifth) == .busy)
        let newcomer = try await self.asking(bob, from: "127.0.2.200")
        #expect(try await self.end(raws[0]) == .busy)
        #expect(try await bob.node.verification(raws[0].id.description).error == .busy)
        try await newcomer.roundTrip()
        #expect(await self.requests(bob) == Set(raws.dropFirst().map(\.id) + [newcomer.id]))
        // A trusted one takes no stranger's place.
        let friend = try await RawPeer(to: bob, from: "127.0.2.2")
        _ = try await bob.node.setTrust(.trusted, for: friend.id.description)
        try await friend.prove()
        _ = try await self.begin(friend)
        try await friend.roundTrip()
        #expect(await self.requests(bob).count == EarshotLimits.comparisonRequests + 1)
        // One that has gone leaves its place.
        await raws[31].close()
        try await eventually("it has gone") { await self.requests(bob).count == EarshotLimits.comparisonRequests }
        let last = try await self.asking(bob, from: "127.0.2.201")
        try await last.roundTrip()
        #expect(await self.requests(bob).count == EarshotLimits.comparisonRequests + 1)
        for raw in raws + [fifth, newcomer, friend, last] { await raw.close() }
        await bob.stop()
    }

    /// Asked again and again, it is told that this is too often, and no person here hears of it.
    @Test func asking() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        for _ in 0..<EarshotLimits.askingBurst {
            let id = try await self.begin(raw)
            try await raw.send(.verification(VerificationFrame(id: id, .end(.givenUp))))
        }
        try await raw.roundTrip()
        let told = try await bob.told().count
        for _ in 0..<3 {
            _ = try await self.begin(raw)
            #expect(try await self.end(raw) == .busy)
        }
        #expect(try await bob.told().count == told)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.askingInterval))
        _ = try await self.begin(raw)
        try await raw.roundTrip()
        #expect(await self.requests(bob) == [raw.id])
        // Blocking it ends that too.
        _ = try await bob.node.setTrust(.blocked, for: raw.id.description)
        #expect(await self.requests(bob).isEmpty)
        #expect(await bob.node.core.strangers.comparisons.places.count == 0)
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func aLostConnectionEndsWhatWasUnderWay() async throws {
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await self.begin(raw)
        _ = try await self.change(bob, .requested)
        _ = try await bob.node.verify(raw.id.description)
        await raw.close()
        #expect(try await self.change(bob, .failed).error == .unavailable)
        await bob.stop()
    }

    @Test func aBlockedPeerIsNotCompared() async throws {
        let (alice, bob) = try await pair(inSession: false)
        _ = try await alice.node.setTrust(.blocked, for: bob.node.id.description)
        let error = await #expect(throws: EarshotError.self) { try await alice.node.verify(bob.node.id.description) }
        #expect(error?.code == .forbidden)
        await alice.stop()
        await bob.stop()
    }
}
