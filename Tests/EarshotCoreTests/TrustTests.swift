import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Trust that expires, a machine that accepts only paired peers, names that return with another key, and redialling of lost peers.
@Suite struct TrustTests {
    private let alice = peerID(1)

    @Test func trustEndsWhenItsTimeIsOver() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice, name: "alice")
        let session = try bob.join(on: link)
        let until = bob.now.wall + .seconds(3600)
        let trusted = try #require(bob.call(.setTrust(.trusted, "alice", until: until))?.peer)
        #expect(trusted.trustEnd == until && trusted.trustSource == .person)
        let rule = try bob.core.explainPolicy("alice").decisions.first { $0.action == .invite }
        #expect(rule?.reason.contains("until") == true)
        // The trust is checked repeatedly, and does not end too soon.
        bob.advance(.seconds(3600) - .milliseconds(1))
        #expect(try bob.peer(self.alice).trust == .trusted)
        bob.advance(.milliseconds(2))
        let seen = try bob.peer(self.alice)
        #expect(seen.trust == .unknown && seen.trustEnd == nil && seen.state == .notConnected)
        #expect(bob.core.sessions.isEmpty && bob.sent(on: link).last == .sessionEnd(session))
        #expect(bob.peersOnDisk[self.alice]?.trust == .unknown && bob.sessionsOnDisk.isEmpty)
        #expect(bob.notices.contains { $0.text == "trust has ended" })
    }

    /// The session is gone from disk, and in memory for a moment more. An invitation is not answered with it.
    @Test(arguments: [Trust.blocked, .unknown]) func invitedWhileTrustIsTakenBack(trust: Trust) throws {
        var (bob, _, _) = try CoreBench.inSession(with: self.alice)
        bob.isDiskHeld = true
        bob.call(.setTrust(trust, self.alice.description, until: nil))
        #expect(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.error == .conflict)
        bob.releaseDisk()
        let again = bob.call(.invite(self.alice.description, context: [], timeout: nil))
        #expect(trust == .blocked ? again?.error == .forbidden : again?.invitation?.state == .pending)
    }

    /// An authority's trust in a peer ends, by its time or on a connection without such a certificate. Data that waits for a session that
    /// can no longer begin fails.
    @Test(arguments: [false, true]) func anAuthoritysTrustEnds(byTime: Bool) throws {
        var bob = CoreBench()
        try bob.see(self.alice)
        let facts = try LinkFacts.of(self.alice, vouchedUntil: bob.now.wall + .seconds(3600))
        bob.handle(.link(LinkID(number: 77), .proven(facts, isOtherDead: false)))
        let queued = try #require(try bob.send(to: self.alice, queue: true)?.get().id)
        if byTime {
            bob.advance(.seconds(3601))
        } else {
            bob.lose(LinkID(number: 77))
            #expect(bob.core.outgoingMessage(queued)?.recipients.first?.status.isFinal == false)
            try bob.prove(self.alice)
        }
        #expect(bob.core.outgoingMessage(queued)?.recipients.first?.error == .notConnected)
    }

    @Test func itEndsWhileTheMachineIsAway() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        _ = try bob.join(on: link)
        bob.call(.setTrust(.trusted, self.alice.description, until: bob.now.wall + .seconds(3600)))
        #expect(try bob.restarted().peer(self.alice).trust == .trusted)
        bob.advance(.seconds(1))
        var late = bob
        late.wallAhead = .seconds(3600)
        let restarted = late.restarted()
        #expect(try restarted.peer(self.alice).trust == .unknown)
        #expect(restarted.core.sessions.isEmpty && restarted.sessionsOnDisk.isEmpty)
        #expect(restarted.events.contains { if case .sessionChanged(_, ended: true) = $0 { true } else { false } })
    }

    @Test func onlyTrustEndsAndOnlyLater() throws {
        var bob = CoreBench()
        let (name, now) = (self.alice.description, bob.now.wall)
        for (trust, until) in [
            (Trust.blocked, now + .seconds(60)), (.unknown, now + .seconds(60)), (.trusted, now), (.trusted, now + .seconds(-1)),
            (.trusted, now + EarshotLimits.trustTime + .milliseconds(1)),
        ] { #expect(bob.call(.setTrust(trust, name, until: until))?.error == .invalidParameter) }
        #expect(bob.call(.setTrust(.trusted, name, until: now + EarshotLimits.trustTime))?.peer?.trustEnd == now + EarshotLimits.trustTime)
        // Permanent trust replaces temporary trust.
        let forGood = bob.call(.setTrust(.trusted, name, until: nil))?.peer
        #expect(forGood?.trust == .trusted && forGood?.trustEnd == nil)
    }

    /// The clock is set, or the machine slept, and no timer fires: the trust is checked nevertheless.
    @Test func trustExpiresAtTheNextCheckIfNoTimerFires() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.trusted, self.alice.description, until: bob.now.wall + .seconds(86_400)))
        bob.wallAhead = .seconds(86_401)
        bob.advance(EarshotLimits.trustCheck - .nanoseconds(1))
        #expect(try bob.peer(self.alice).trust == .trusted)
        bob.advance(.nanoseconds(1))
        #expect(try bob.peer(self.alice).trust == .unknown)
    }

    @Test func aPairedOnlyMachineShowsNoStrangersInvitation() throws {
        var bob = CoreBench { $0.policy.pairedOnly = true }
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        #expect(bob.core.invitations(all: true).isEmpty)
        bob.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        #expect(bob.inviteAnswer(on: link) == InviteAnswer(id: id, decision: .declined))
        let rule = try bob.core.explainPolicy(self.alice.description).decisions.first { $0.action == .invite }
        #expect(rule?.outcome == .deny && rule?.rule == "invitations.paired_only = yes")
        // A trusted peer is still admitted.
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        _ = try bob.join(on: link)
    }

    /// A peer that is trusted by its id before its first connection is unproven until it connects, also after a restart.
    @Test func aPeerThatIsTrustedByItsIDAloneHasProvenNothing() throws {
        var bob = CoreBench()
        let id = self.alice.description
        let trusted = bob.call(.setTrust(.trusted, id, until: nil))?.peer
        #expect(trusted?.trust == .trusted && trusted?.proven == false)
        var again = bob.restarted()
        #expect(try again.peer(self.alice).proven == false)
        // That id is advertised under a name, and nothing proves that the name belongs to the key.
        try again.see(self.alice, name: "alice")
        #expect(again.call(.setTrust(.unknown, "alice", until: nil))?.error == .invalidParameter)
        try again.prove(self.alice, name: "alice")
        #expect(try again.peer(self.alice).proven)
        var later = again.restarted()
        #expect(try later.peer(self.alice).proven && later.peer(self.alice).name == "alice")
        #expect(later.call(.setTrust(.unknown, "alice", until: nil))?.peer?.trust == .unknown)
    }

    @Test func aKnownNameWithAnotherKeyIsSaid() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice, name: "alice")
        _ = try bob.join(on: link)
        try bob.see(peerID(2), name: "Alice")
        #expect(try bob.peer(peerID(2)).nameConflict == self.alice)
        #expect(try bob.peer(self.alice).nameConflict == peerID(2))
        #expect(bob.notices.contains { $0.text == "a name that is known has come with another key" })
        // The name still means the known peer.
        #expect(try bob.core.resolve("alice") == self.alice)
    }

    // MARK: Redialling a lost peer

    private func lost(_ end: LinkEnd, isLower: Bool) throws -> CoreBench {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        let (own, other) = isLower ? (low, high) : (high, low)
        var bob = CoreBench(own)
        let link = try bob.prove(other)
        _ = try bob.join(on: link)
        try bob.see(other)
        #expect(bob.dials == [])
        bob.lose(link, end)
        return bob
    }

    @Test func higherPeerDialDelay() throws {
        var bob = try self.lost(.lost, isLower: false)
        bob.advance(EarshotLimits.higherPeerDialDelay - .nanoseconds(1))
        #expect(bob.dials == [])
        bob.advance(.nanoseconds(1))
        #expect(bob.dials.count == 1)
    }

    @Test func theLowerPeerDialsAtOnce() throws {
        #expect(try self.lost(.lost, isLower: true).dials.count == 1)
    }

    @Test(arguments: [false, true]) func supersededDialDelay(isLower: Bool) throws {
        var bob = try self.lost(.refused(Refusal(code: .superseded, explanation: "")), isLower: isLower)
        bob.advance(EarshotLimits.supersededDialDelay - .nanoseconds(1))
        #expect(bob.dials == [])
        bob.advance(.nanoseconds(1))
        #expect(bob.dials.count == 1)
    }

    /// Each failure leads to the next longer pause, up to the longest. A sighting ends the pause.
    @Test func eachFailedDialLengthensThePause() throws {
        var bob = try self.lost(.lost, isLower: true)
        let peer = try #require(bob.dials.first)
        let delays = EarshotLimits.redialDelays
        for attempt in 1...delays.count + 1 {
            bob.handle(.dial(peer, .ended(EarshotError(.unavailable, "no answer"))))
            let pause = delays[min(attempt, delays.count - 1)]
            bob.advance(pause - .nanoseconds(1))
            #expect(bob.dials.count == attempt, "not before \(pause)")
            bob.advance(.nanoseconds(1))
            #expect(bob.dials.count == attempt + 1)
        }
        bob.handle(.dial(peer, .ended(EarshotError(.unavailable, "no answer"))))
        let count = bob.dials.count
        try bob.see(peer)
        #expect(bob.dials.count == count + 1)
    }

    /// Queued data, for which no caller waits, does not postpone a dial, however often it is sent.
    @Test func whatIsQueuedPutsNoDialOff() throws {
        var bob = try self.lost(.lost, isLower: true)
        let peer = try #require(bob.dials.first)
        for _ in EarshotLimits.redialDelays {
            bob.handle(.dial(peer, .ended(EarshotError(.unavailable, "no answer"))))
            bob.advance(EarshotLimits.redialDelays[4])
        }
        bob.handle(.dial(peer, .ended(EarshotError(.unavailable, "no answer"))))
        let count = bob.dials.count
        for _ in 1...5 {
            bob.send(to: peer, queue: true)
            bob.advance(.seconds(1))
        }
        #expect(bob.dials.count == count + 1)
    }

    /// A peer that only the settings have admitted leaves nothing behind, in memory or on disk.
    @Test(arguments: [false, true]) func aRowThatNoPersonDecidedAboutGoesWithItsSession(theyEnd: Bool) throws {
        var bob = CoreBench { $0.policy.fromUnknown = .accept }
        let link = try bob.prove(self.alice)
        let session = try bob.join(on: link)
        #expect(bob.peersOnDisk.count == 1)
        if theyEnd { bob.frame(.sessionEnd(session), on: link) } else { bob.call(.leave(session)) }
        #expect(bob.core.records[self.alice]?.standing.stored == nil)
        bob.lose(link)
        #expect(bob.core.records.count == 0 && bob.core.names.count == 0 && bob.core.discovered.count == 0)
        #expect(bob.peersOnDisk.isEmpty && bob.sessionsOnDisk.isEmpty)
        // Its use of TLS is still remembered, as for any stranger.
        #expect(bob.core.pins.contains(self.alice))
        #expect(bob.core.nextDeadline == nil)
    }
}
