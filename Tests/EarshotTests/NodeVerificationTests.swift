import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

@Suite struct NodeVerificationTests {
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

    @Test func thereAreFewAttemptsWithAllTogether() {
        var attempts = ComparisonAttempts()
        let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
        for number in 0..<EarshotLimits.comparisonsPerPeriod {
            #expect(attempts.pause(for: peerID(99), at: start) == nil)
            attempts.note(peerID(UInt8(number)), at: start)
        }
        #expect(attempts.pause(for: peerID(99), at: start) == EarshotLimits.comparisonPeriod)
        let later = start + .seconds(59)
        #expect(attempts.pause(for: peerID(99), at: later) == .seconds(1))
        #expect(attempts.pause(for: peerID(99), at: start + .seconds(60)) == nil)
        attempts.note(peerID(1), at: start + .seconds(60))
        #expect(attempts.pause(for: peerID(1), at: start + .seconds(61)) == .seconds(29))
        #expect(attempts.pause(for: peerID(1), at: start + .seconds(90)) == nil)
        #expect(attempts.pause(for: peerID(2), at: start + .seconds(61)) == nil)
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

    /// A hundred strangers ask: so many are shown, the rest hear that there are too many.
    @Test func requestsAreFew() async throws {
        let bob = try await TestNode("bob")
        var raws: [RawPeer] = []
        for _ in 0..<EarshotLimits.comparisonRequests + 1 {
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            _ = try await self.begin(raw)
            if raws.count < EarshotLimits.comparisonRequests { try await raw.roundTrip() }
            raws.append(raw)
        }
        let last = try #require(raws.last)
        let reason = try await last.next { frame -> VerificationFrame.EndReason? in
            if case .verification(let verification) = frame, case .end(let reason) = verification.part { reason } else { nil }
        }
        #expect(reason == .busy)
        for raw in raws { await raw.close() }
        await bob.stop()
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
