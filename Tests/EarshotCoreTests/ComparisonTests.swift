import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// The comparison of digits by two users, and peers that violate its protocol.
@Suite struct ComparisonTests {
    /// Two connected machines, whose frames are delivered at once.
    private struct Pair {
        var alice = CoreBench(peerID(1), seed: 1)
        var bob = CoreBench(peerID(2), seed: 2)
        var links: (alice: LinkID, bob: LinkID)

        init() throws {
            self.links = (try self.alice.prove(peerID(2), name: "bob", isInitiator: true), try self.bob.prove(peerID(1), name: "alice"))
        }

        /// Delivers frames until none is in flight.
        mutating func relay() {
            while true {
                let (from, to) = (self.alice.sent(on: self.links.alice), self.bob.sent(on: self.links.bob))
                guard !from.isEmpty || !to.isEmpty else { return }
                for frame in from { self.bob.frame(frame, on: self.links.bob) }
                for frame in to { self.alice.frame(frame, on: self.links.alice) }
            }
        }

        /// Both users ask for the comparison, alice's first. Returns the digits of both sides.
        mutating func compare() throws -> (String?, String?) {
            #expect(self.alice.call(.verify("bob", timeout: .seconds(300)))?.verification?.state == .waiting)
            self.relay()
            let asked = try self.bob.core.verification("alice")
            #expect(asked.state == .requested && asked.digits == nil)
            self.bob.call(.verify("alice", timeout: .seconds(300)))
            self.relay()
            let (ours, theirs) = (try self.alice.core.verification("bob"), try self.bob.core.verification("alice"))
            #expect(ours.state == .ready && theirs.state == .ready)
            return (ours.digits, theirs.digits)
        }
    }

    @Test func bothSidesShowTheSameDigitsOnceBothHaveAsked() throws {
        var pair = try Pair()
        let (ours, theirs) = try pair.compare()
        #expect(ours != nil && ours == theirs)
        // After one attempt, both sides have to pause.
        #expect(pair.alice.call(.verify("bob", timeout: nil))?.error == .busy)
        #expect(pair.bob.call(.verify("alice", timeout: nil))?.error == .busy)
        // A user's confirmation trusts the peer, and is stored.
        let trusted = pair.alice.call(.setTrust(.trusted, "bob", until: nil))?.peer
        #expect(trusted?.trust == .trusted && trusted?.verified == .matched)
        #expect(try pair.alice.core.verification("bob").state == .matched)
        #expect(try pair.alice.restarted().peer(peerID(2)).verified == .matched)
    }

    @Test func whenBothAskAtOnceOneAttemptIsMade() throws {
        var pair = try Pair()
        pair.alice.call(.verify("bob", timeout: nil))
        pair.bob.call(.verify("alice", timeout: nil))
        pair.relay()
        let digits = [try pair.alice.core.verification("bob").digits, try pair.bob.core.verification("alice").digits]
        #expect(digits[0] != nil && digits[0] == digits[1])
    }

    @Test func aMismatchIsRememberedAndTakesTrustBack() throws {
        var pair = try Pair()
        pair.alice.call(.setTrust(.trusted, "bob", until: nil))
        _ = try pair.compare()
        #expect(pair.alice.call(.endVerification("bob", mismatch: true))?.verification?.state == .mismatched)
        pair.relay()
        let seen = try pair.alice.peer(peerID(2))
        #expect(seen.trust == .unknown && seen.verified == .mismatched)
        #expect(try pair.bob.core.verification("alice").errorMessage?.contains("alice says") == true)
        #expect(pair.alice.call(.setTrust(.trusted, "bob", until: nil))?.error == .forbidden)
        // A later "yes" on the other side does not count after this "no", until a user there resets the comparison.
        #expect(pair.bob.call(.setTrust(.trusted, "alice", until: nil))?.error == .forbidden)
        pair.bob.call(.setTrust(.unknown, "alice", until: nil))
        #expect(try pair.bob.core.verification("alice").state == .none)
        #expect(pair.bob.call(.setTrust(.trusted, "alice", until: nil))?.peer?.trust == .trusted)
        var again = pair.alice.restarted { $0.policy.fromUnknown = .accept }
        #expect(try again.peer(peerID(2)).verified == .mismatched)
        #expect(try again.core.explainPolicy("bob").decisions.first { $0.action == .invite }?.outcome == .ask)
        // A user may reset the result.
        #expect(again.call(.setTrust(.unknown, "bob", until: nil))?.peer?.verified == nil)
        #expect(again.call(.setTrust(.trusted, "bob", until: nil))?.peer?.trust == .trusted)
    }

    /// The effect is the same as when a user revokes the trust.
    @Test func aMismatchEndsWhatWaitsForASession() throws {
        var pair = try Pair()
        pair.alice.call(.setTrust(.trusted, "bob", until: nil))
        _ = try pair.compare()
        let id = MessageID(high: 1, low: 1)
        pair.alice.send(to: peerID(2), id: id, queue: true)
        #expect(pair.alice.core.outgoingMessage(id)?.stands(.queued, at: peerID(2)) == true)
        pair.alice.call(.endVerification("bob", mismatch: true))
        #expect(pair.alice.core.outgoingMessage(id)?.stands(.failed, at: peerID(2)) == true)
    }

    /// If the disk does not accept the report, nothing has changed, and the user can repeat it.
    @Test func aMismatchThatCannotBeKept() throws {
        var pair = try Pair()
        _ = try pair.compare()
        pair.alice.diskError = EarshotError(.storage, "the disk is full")
        #expect(pair.alice.call(.endVerification("bob", mismatch: true))?.error == .storage)
        #expect(try pair.alice.core.verification("bob").state == .ready)
        #expect(pair.alice.call(.endVerification("bob", mismatch: true))?.verification?.state == .mismatched)
    }

    @Test func itCanBeGivenUpAndTimesOut() throws {
        var pair = try Pair()
        pair.alice.call(.verify("bob", timeout: .seconds(300)))
        pair.relay()
        #expect(pair.alice.call(.endVerification("bob", mismatch: false))?.verification?.state == .cancelled)
        pair.relay()
        #expect(try pair.bob.core.verification("alice").errorMessage?.contains("given it up") == true)
        pair.alice.call(.verify("bob", timeout: .seconds(2)))
        pair.relay()
        pair.alice.advance(.seconds(2))
        pair.relay()
        #expect(try pair.alice.core.verification("bob").error == .timedOut)
        #expect(try pair.bob.core.verification("alice").errorMessage?.contains("stopped waiting") == true)
        // No digits were derived, so that no pause is needed.
        let (ours, theirs) = try pair.compare()
        #expect(ours == theirs)
        #expect(pair.alice.call(.endVerification("bob", mismatch: true))?.error == nil)
        #expect(pair.alice.call(.endVerification("bob", mismatch: true))?.error == .conflict, "there are no digits any more")
    }

    /// A repeated request waits for the longer of the two times.
    @Test func aLongerTimeExtendsWhatWaits() throws {
        var pair = try Pair()
        let first = try #require(pair.alice.call(.verify("bob", timeout: .seconds(60)))?.verification?.end)
        #expect(pair.alice.call(.verify("bob", timeout: .seconds(1)))?.verification?.end == first)
        #expect(pair.alice.call(.verify("bob", timeout: .seconds(300)))?.verification?.end == first + .seconds(240))
        #expect(pair.alice.events.count { if case .verificationChanged = $0 { true } else { false } } == 2)
        let most = pair.alice.now.wall + WireLimits.comparisonTime
        #expect(pair.alice.call(.verify("bob", timeout: .seconds(1_000_000)))?.verification?.end == most)
        pair.alice.advance(WireLimits.comparisonTime - .nanoseconds(1))
        #expect(try pair.alice.core.verification("bob").state == .waiting)
        pair.alice.advance(.nanoseconds(1))
        #expect(try pair.alice.core.verification("bob").state == .timedOut)
    }

    /// Setting the wall clock does not change the waiting time.
    @Test(arguments: [Duration.seconds(3600), .seconds(-3600)]) func aSetClockExtendsNothing(by change: Duration) throws {
        var bob = CoreBench()
        _ = try bob.prove(peerID(1))
        bob.call(.verify("peer", timeout: .seconds(60)))
        bob.wallAhead = change
        bob.call(.verify("peer", timeout: .seconds(1)))
        bob.advance(.seconds(59))
        #expect(try bob.core.verification("peer").state == .waiting)
        bob.call(.verify("peer", timeout: .seconds(60)))
        bob.advance(.seconds(59))
        #expect(try bob.core.verification("peer").state == .waiting)
    }

    /// A caller that gives no time, or a time of zero, waits for the default.
    @Test(arguments: [nil, .zero] as [Duration?]) func aComparisonWaitsForTheDefaultTime(timeout: Duration?) throws {
        var pair = try Pair()
        pair.alice.call(.verify("bob", timeout: timeout))
        pair.alice.advance(EarshotLimits.comparisonTime - .nanoseconds(1))
        #expect(try pair.alice.core.verification("bob").state == .waiting)
        _ = pair.alice.sent(on: pair.links.alice)
        pair.alice.advance(.nanoseconds(1))
        #expect(self.end(&pair.alice, pair.links.alice) == .timedOut)
        #expect(try pair.alice.core.verification("bob").state == .timedOut)
    }

    @Test func comparisonShownTime() throws {
        var pair = try Pair()
        _ = try pair.compare()
        pair.alice.advance(EarshotLimits.comparisonShownTime - .nanoseconds(1))
        #expect(try pair.alice.core.verification("bob").state == .ready)
        pair.alice.advance(.nanoseconds(1))
        let shown = try pair.alice.core.verification("bob")
        #expect(shown.state == .none && shown.digits == nil)
    }

    // MARK: Peers that violate the protocol

    private static var number: UInt64 { 7 }

    private func begin(_ bob: inout CoreBench, _ link: LinkID, _ number: UInt64 = number) -> VerificationID {
        let id = VerificationID(high: 8, low: number)
        bob.frame(.verification(VerificationFrame(id: id, .begin(commitment: [UInt8](repeating: 1, count: 32)))), on: link)
        return id
    }

    private func end(_ bob: inout CoreBench, _ link: LinkID) -> VerificationFrame.EndReason? {
        bob.sent(on: link).compactMap { frame in
            if case .verification(let verification) = frame, case .end(let reason) = verification.part { reason } else { nil }
        }.last
    }

    private func requests(_ bob: CoreBench) -> Set<PeerID> {
        Set(bob.core.records.values.filter { $0.comparing.state == .requested }.map(\.id))
    }

    /// A peer asks and does not reveal its nonce.
    @Test func comparisonStepTime() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        _ = self.begin(&bob, link)
        #expect(bob.call(.verify(peerID(1).description, timeout: nil))?.verification?.state == .waiting)
        bob.advance(EarshotLimits.comparisonStepTime - .nanoseconds(1))
        #expect(try bob.core.verification(peerID(1).description).state == .waiting)
        bob.advance(.nanoseconds(1))
        #expect(self.end(&bob, link) == .timedOut)
        #expect(try bob.core.verification(peerID(1).description).state == .timedOut)
    }

    @Test func aFalseRevealIsRefusedAndRemembered() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        let id = self.begin(&bob, link)
        bob.call(.verify(peerID(1).description, timeout: nil))
        bob.frame(.verification(VerificationFrame(id: id, .reveal(nonce: [UInt8](repeating: 2, count: 32)))), on: link)
        #expect(bob.closed[link] == .some(.protocolViolation))
        let shown = try bob.core.verification(peerID(1).description)
        #expect(shown.state == .mismatched && shown.error == .protocolViolation)
        #expect(try bob.restarted().peer(peerID(1)).verified == .mismatched)
    }

    /// This also holds while a user's trust, given without knowledge of the reveal, is being written.
    @Test func aFalseRevealEndsTrustThatIsBeingWritten() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        let id = self.begin(&bob, link)
        bob.call(.verify(peerID(1).description, timeout: nil))
        bob.isDiskHeld = true
        bob.call(.setTrust(.trusted, peerID(1).description, until: nil))
        bob.frame(.verification(VerificationFrame(id: id, .reveal(nonce: [UInt8](repeating: 2, count: 32)))), on: link)
        bob.releaseDisk()
        for bench in [bob, bob.restarted()] {
            let peer = try bench.peer(peerID(1))
            #expect(peer.trust == .unknown && peer.verified == .mismatched)
        }
    }

    @Test func nothingIsShownToAPeerThatAsksAlone() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        _ = self.begin(&bob, link)
        let shown = try bob.core.verification(peerID(1).description)
        #expect(shown.state == .requested && shown.digits == nil)
        // A second attempt while the first is under way closes the connection, and changes no stored row.
        _ = self.begin(&bob, link, 9)
        #expect(bob.closed[link] == .some(.protocolViolation))
        #expect(bob.peersOnDisk.isEmpty)
    }

    /// More strangers ask than there are places, and more from one address than its share. The address that holds most places loses one.
    @Test func requestsAreFew() throws {
        var bob = CoreBench()
        func asking(_ number: Int, from place: Int) throws -> (peer: PeerID, link: LinkID) {
            let peer = PeerID(subjectPublicKeyInfo: [7, UInt8(number)])
            let link = try bob.prove(peer, from: [127, 0, 2, UInt8(place)])
            _ = self.begin(&bob, link)
            return (peer, link)
        }
        let all = try (0..<EarshotLimits.comparisonRequests).map {
            try asking($0, from: 1 + $0 / EarshotLimits.comparisonRequestsPerAddress)
        }
        #expect(self.requests(bob) == Set(all.map(\.peer)))
        let fifth = try asking(100, from: 1)
        #expect(self.end(&bob, fifth.link) == .busy)
        let newcomer = try asking(101, from: 200)
        #expect(self.end(&bob, all[0].link) == .busy)
        #expect(try bob.core.verification(all[0].peer.description).error == .busy)
        #expect(self.requests(bob) == Set(all.dropFirst().map(\.peer) + [newcomer.peer]))
        // A trusted peer takes no stranger's place.
        bob.call(.setTrust(.trusted, PeerID(subjectPublicKeyInfo: [7, 102]).description, until: nil))
        _ = try asking(102, from: 2)
        #expect(self.requests(bob).count == EarshotLimits.comparisonRequests + 1)
        // A stranger that disconnects leaves its place.
        bob.lose(all[31].link)
        #expect(self.requests(bob).count == EarshotLimits.comparisonRequests)
        _ = try asking(103, from: 201)
        #expect(self.requests(bob).count == EarshotLimits.comparisonRequests + 1)
    }

    /// A peer that asks too often is answered `busy`, and no user here hears of it.
    @Test func aPeerThatAsksTooOftenIsAnsweredBusy() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        for number in 0..<UInt64(EarshotLimits.askingBurst) {
            let id = self.begin(&bob, link, number)
            bob.frame(.verification(VerificationFrame(id: id, .end(.givenUp))), on: link)
        }
        let events = bob.events.count
        for number in 100..<103 as Range<UInt64> {
            _ = self.begin(&bob, link, number)
            #expect(self.end(&bob, link) == .busy)
        }
        #expect(bob.events.count == events)
        bob.advance(EarshotLimits.askingInterval)
        _ = self.begin(&bob, link, 200)
        #expect(self.requests(bob) == [peerID(1)])
        // Blocking the peer ends its request too.
        bob.call(.setTrust(.blocked, peerID(1).description, until: nil))
        #expect(self.requests(bob).isEmpty && bob.core.strangers.comparisons.places.count == 0)
    }

    @Test func aLostConnectionEndsWhatWasUnderWay() throws {
        var bob = CoreBench()
        let link = try bob.prove(peerID(1))
        _ = self.begin(&bob, link)
        bob.call(.verify(peerID(1).description, timeout: nil))
        bob.lose(link)
        let shown = bob.events.compactMap { if case .verificationChanged(let verification) = $0 { verification } else { nil } }.last
        #expect(shown?.state == .failed && shown?.error == .unavailable)
        #expect(bob.core.records.count == 0, "it was a stranger, and is gone")
    }

    @Test func aBlockedPeerIsNotCompared() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.blocked, peerID(1).description, until: nil))
        #expect(bob.call(.verify(peerID(1).description, timeout: nil))?.error == .forbidden)
        #expect(bob.call(.verify("nobody", timeout: nil))?.error == .unknownPeer)
    }

    /// While a dial is under way, the exchange waits for the connection that stays.
    @Test func whileThisSideDialsItWaits() throws {
        var bob = CoreBench()
        try bob.see(peerID(1))
        bob.call(.verify(peerID(1).description, timeout: nil))
        #expect(bob.dials == [peerID(1)])
        let link = try bob.prove(peerID(1))
        #expect(bob.sent(on: link) == [])
        bob.handle(.dial(peerID(1), .ended(nil)))
        guard case .verification? = bob.sent(on: link).first else {
            Issue.record("it has not begun")
            return
        }
    }
}
