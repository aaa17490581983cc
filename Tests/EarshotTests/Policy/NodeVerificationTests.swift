import EarshotWire
import Foundation
import NIOCore
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

    /// Starts the comparison on both sides, alice first.
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
        // One attempt, then a pause, on both sides.
        for (node, peer) in [(alice, bob), (bob, alice)] {
            let error = await #expect(throws: EarshotError.self) { try await node.node.verify(peer.node.id.description) }
            #expect(error?.code == .busy)
        }
        // The user's confirmation sets the trust, and is persisted.
        let trusted = try await alice.node.setTrust(.trusted, for: "bob")
        #expect(trusted.trust == .trusted && trusted.verified == .matched)
        #expect(try await alice.node.verification("bob").state == .matched)
        await alice.stop()
        await bob.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(try await again.node.peer("bob").verified == .matched)
        await again.stop()
    }

    /// Two users without a connection start the comparison at the same time. Both machines dial, one of the two connections is closed, and
    /// neither the exchange nor the requests are lost.
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
        // A later "yes" on the other side is ignored after this "no", until the user there resets it.
        let late = await #expect(throws: EarshotError.self) { try await bob.node.setTrust(.trusted, for: "alice") }
        #expect(late?.code == .forbidden && late?.message.contains("says that the digits differ") == true)
        _ = try await bob.node.setTrust(.unknown, for: "alice")
        #expect(try await bob.node.verification("alice").state == .none)
        #expect(try await bob.node.setTrust(.trusted, for: "alice").verified == nil)
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state) { $0.fromUnknown = .accept }
        #expect(try await again.node.peer("bob").verified == .mismatched)
        #expect(try await again.node.explainPolicy("bob").decisions.first { $0.action == .invite }?.outcome == .ask)
        // The user may reset it.
        #expect(try await again.node.setTrust(.unknown, for: "bob").verified == nil)
        _ = try await again.node.setTrust(.trusted, for: "bob")
        await again.stop()
        await bob.stop()
    }
}
