import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Outgoing and incoming invitations, and their outcomes.
@Suite struct InvitationTests {
    private let alice = peerID(1)

    @Test func aContextAboveTheLimitIsNotSent() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let name = self.alice.description
        let most = [UInt8](repeating: 1, count: WireLimits.invitationContext)
        #expect(bob.call(.invite(name, context: most + [1], timeout: nil))?.error == .invalidParameter)
        #expect(bob.sent(on: link) == [])
        #expect(bob.call(.invite(name, context: most, timeout: nil))?.invitation?.context == most)
        guard case .invite(let invite)? = bob.sent(on: link).first else {
            Issue.record("not sent")
            return
        }
        #expect(invite.context == most && invite.timeoutMilliseconds == 30_000)
    }

    private static let most = EarshotLimits.invitationTimeout
    private static let timeouts: [(Duration?, Duration)] = [
        (nil, .seconds(30)), (.zero, .seconds(30)), (.seconds(-1), .seconds(30)), (.seconds(7), .seconds(7)),
        (most - .seconds(1), most - .seconds(1)), (most, most), (most + .seconds(1), most), (.seconds(Int64.max / 2), most),
    ]

    @Test(arguments: Self.timeouts) func anInvitationTimesOutAtItsDeadline(asked: Duration?, given: Duration) throws {
        var bob = CoreBench()
        try bob.see(self.alice)
        let invitation = try #require(bob.call(.invite("peer", context: [], timeout: asked))?.invitation)
        #expect(invitation.end - invitation.created == given)
        bob.advance(given - .nanoseconds(1))
        #expect(try bob.invitation(invitation.id).state == .pending)
        bob.advance(.nanoseconds(1))
        #expect(try bob.invitation(invitation.id).state == .timedOut)
    }

    @Test(arguments: [InvitationPolicy.accept, .reject, .ask])
    func thePolicyDecidesUnknownAndTrustedPeersApart(policy: InvitationPolicy) throws {
        // The other policy is the opposite, so that the tested policy is seen to apply.
        let opposite: InvitationPolicy = policy == .accept ? .ask : .accept
        for isTrusted in [false, true] {
            var bob = CoreBench {
                $0.policy.fromUnknown = isTrusted ? opposite : policy
                $0.policy.fromTrusted = isTrusted ? policy : opposite
            }
            if isTrusted { bob.call(.setTrust(.trusted, self.alice.description, until: nil)) }
            let link = try bob.prove(self.alice)
            let id = bob.invite(on: link)
            let answer = bob.inviteAnswer(on: link)
            switch policy {
            case .ask:
                #expect(bob.pending == [id] && answer == nil)
                #expect(bob.events.contains(.invitationReceived(try bob.invitation(id))))
            case .reject:
                #expect(answer == InviteAnswer(id: id, decision: .declined))
                #expect(bob.core.sessions.isEmpty)
            case .accept:
                #expect(answer?.decision == bob.core.sessions.first.map { .accepted($0.id) })
                #expect(bob.sessionsOnDisk[self.alice]?.id == bob.core.sessions.first?.id)
            }
        }
    }

    /// When a peer becomes trusted, its pending invitation is answered like its next one would be.
    @Test(arguments: [InvitationPolicy.accept, .reject, .ask]) func trustAnswersWhatWaits(policy: InvitationPolicy) throws {
        var bob = CoreBench { $0.policy.fromTrusted = policy }
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        let isAccepted = policy == .accept
        #expect(bob.inviteAnswer(on: link)?.decision == bob.core.sessions.first.map { .accepted($0.id) })
        #expect(bob.core.sessions.isEmpty == !isAccepted && (bob.sessionsOnDisk[self.alice] != nil) == isAccepted)
        #expect(try bob.invitation(id).state == (isAccepted ? .accepted : .pending), "a person who is asked may still answer")
    }

    @Test func aLateAnswerHearsWhenTheInvitationExpired() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice, name: "alice")
        let id = bob.invite(on: link)
        let end = try bob.invitation(id).end
        bob.advance(end - bob.now.wall)
        #expect(try bob.invitation(id).state == .timedOut)
        let failure = bob.call(.respond(id, .accept, always: false))?.failure
        #expect(failure?.code == .conflict)
        #expect(failure?.message == "the invitation \(id) of alice expired at \(end.text)")
    }

    @Test func blockingWhileItsPromptIsOpen() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.call(.setTrust(.blocked, self.alice.description, until: nil))
        #expect(bob.inviteAnswer(on: link) == InviteAnswer(id: id, decision: .declined))
        #expect(bob.pending == [])
        #expect(bob.call(.respond(id, .accept, always: false))?.error == .conflict)
        #expect(bob.core.sessions.isEmpty)
    }

    @Test func aLateAcceptanceEndsTheSessionOnTheOtherSide() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let sent = try #require(bob.call(.invite(self.alice.description, context: [], timeout: .milliseconds(50)))?.invitation)
        bob.advance(.milliseconds(50))
        #expect(bob.sent(on: link).last == .inviteWithdraw(InviteWithdraw(id: sent.id, reason: .timedOut)))
        let session = SessionID(high: 1, low: 2)
        bob.frame(.sessionResume(session), on: link)
        #expect(bob.sent(on: link) == [.sessionEnd(session)])
        #expect(bob.core.sessions.isEmpty)
        #expect(try bob.invitation(sent.id).state == .timedOut)
    }

    @Test func theInviterComesBackForItsAnswer() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.lose(link)
        let accepted = try #require(bob.call(.respond(id, .accept, always: false))?.invitation?.sessionID)
        let again = try bob.prove(self.alice)
        #expect(bob.sent(on: again) == [.sessionResume(accepted)])
        bob.invite(id, on: again)
        #expect(bob.inviteAnswer(on: again)?.decision == .accepted(accepted))
    }

    @Test func holdingTheSessionIsTheInviteesAnswer() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let sent = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.call(.awaitInvitation(sent.id))
        let call = bob.lastCall
        bob.lose(link)
        let again = try bob.prove(self.alice)
        let session = SessionID(high: 1, low: 2)
        bob.frame(.sessionResume(session), on: again)
        #expect(bob.answers[call]?.invitation?.state == .accepted)
        #expect(bob.answers[call]?.invitation?.sessionID == session)
        #expect(bob.core.sessions.map(\.id) == [session])
        // The session is named once on this connection too, because the other side waits for that.
        #expect(bob.sent(on: again).filter { $0 == .sessionResume(session) }.count == 1)
    }

    // MARK: Sessions of running programs

    /// If sessions end with programs, a peer that asks while a session exists has restarted. A user is asked, and messages to the former
    /// program do not reach the new one.
    @Test func aProgramThatAsksAnewEndsItsFormerSession() throws {
        var (bob, _, session) = try CoreBench.inSession(with: self.alice) { $0.sessionsEndWithPrograms = true }
        var settings = bob.core.settings
        settings.policy.fromUnknown = .ask
        bob.handle(.settings(settings))
        let link = try bob.prove(self.alice)
        #expect(bob.sent(on: link) == [.sessionResume(session)])
        bob.send("old", to: self.alice)
        let call = bob.lastCall
        let asked = bob.invite(on: link)
        #expect(bob.pending == [asked] && bob.core.sessions.isEmpty)
        #expect(bob.sent(on: link) == [.sessionEnd(session)])
        #expect(try bob.outcome(of: call)?.get().recipients.first?.error == .notConnected)
        bob.call(.respond(asked, .accept, always: false))
        #expect(bob.core.sessions.map(\.id) != [session] && bob.core.sessions.count == 1)
        #expect(bob.messages(on: link).isEmpty)
    }

    /// A session that an earlier program held does not answer this program's invitation.
    @Test func aProgramThatAsksTakesUpNoFormerSession() throws {
        var bob = CoreBench { $0.sessionsEndWithPrograms = true }
        let link = try bob.prove(self.alice)
        let own = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.frame(.sessionResume(SessionID(high: 1, low: 2)), on: link)
        #expect(try bob.invitation(own.id).state == .pending)
        #expect(bob.core.sessions.isEmpty)
        // Sending does not invite a peer either.
        var carol = CoreBench { $0.sessionsEndWithPrograms = true }
        let other = try carol.prove(self.alice)
        let outcome = carol.send("x", to: self.alice)
        #expect(throws: EarshotError.self) { try outcome?.get() }
        #expect(carol.sent(on: other).isEmpty && carol.core.invitations(all: true).isEmpty)
    }

    /// If two invitations cross, the one of the lower id stays, and both sides have one session.
    @Test(arguments: [false, true]) func crossingInvitationsMakeOneSession(isLower: Bool) throws {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        let (own, other) = isLower ? (low, high) : (high, low)
        var bob = CoreBench(own)
        let link = try bob.prove(other)
        let sent = try #require(bob.call(.invite(other.description, context: [], timeout: nil))?.invitation)
        _ = bob.sent(on: link)
        let theirs = bob.invite(on: link)
        if isLower {
            #expect(bob.sent(on: link) == [], "the other side answers")
            bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(SessionID(high: 1, low: 1)))), on: link)
        } else {
            guard case .accepted? = bob.inviteAnswer(on: link)?.decision else {
                Issue.record("a person here wants the session too")
                return
            }
            #expect(try bob.invitation(theirs).state == .accepted)
        }
        #expect(try bob.invitation(sent.id).state == .accepted)
        #expect(bob.core.sessions.map(\.id) == [bob.sessionsOnDisk[other]?.id])
    }

    @Test func aWithdrawnOneIsOver() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)), on: link)
        #expect(try bob.invitation(id).state == .cancelled)
        #expect(bob.call(.respond(id, .accept, always: false))?.error == .conflict)
        // The same holds for an invitation by this side.
        let own = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        _ = bob.sent(on: link)
        #expect(bob.call(.withdraw(own.id))?.invitation?.state == .cancelled)
        #expect(bob.sent(on: link) == [.inviteWithdraw(InviteWithdraw(id: own.id, reason: .withdrawn))])
        #expect(bob.call(.withdraw(own.id))?.error == .conflict)
        #expect(bob.call(.withdraw(id))?.error == .conflict)
        #expect(bob.call(.withdraw(InvitationID(high: 0, low: 0)))?.error == .notFound)
    }

    /// Makes a bench in which bob's invitation was accepted with this session on a connection, and his disk is busy.
    private func accepted(_ session: SessionID) throws -> (bob: CoreBench, invitation: Invitation, link: LinkID) {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let own = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.isDiskHeld = true
        bob.frame(.inviteAnswer(InviteAnswer(id: own.id, decision: .accepted(session))), on: link)
        return (bob, own, link)
    }

    /// The session exists, and is named on the next connection. Repeating and withdrawing the invitation would end it on one side alone.
    @Test func oneThatWasAcceptedIsNotWithdrawnWhileTheDiskIsBusy() throws {
        let session = SessionID(high: 6, low: 6)
        var (bob, own, _) = try self.accepted(session)
        let second = try bob.prove(self.alice)
        let sent = bob.sent(on: second)
        #expect(sent.contains(.sessionResume(session)))
        #expect(!sent.contains { if case .invite = $0 { true } else { false } })
        #expect(bob.call(.withdraw(own.id))?.error == .conflict)
        #expect(bob.sent(on: second) == [])
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == .accepted)
        #expect(bob.core.sessions.map(\.id) == [session] && bob.sessionsOnDisk[self.alice]?.id == session)
    }

    /// A caller that invites the peer again gets the outcome when the session is on disk, or could not be written.
    @Test(arguments: [false, true]) func invitedAgainWhileTheDiskIsBusy(isFull: Bool) throws {
        var (bob, own, _) = try self.accepted(SessionID(high: 6, low: 6))
        let again = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        #expect(again.id == own.id && again.state == .pending)
        if isFull { bob.diskError = EarshotError(.noSpace, "full") }
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == (isFull ? .failed : .accepted))
    }

    /// The peer has missed the session's end, and still holds the session. Here it has ended, before its beginning is on disk.
    @Test func aSessionThatEndedWhileTheDiskIsBusyIsNotHeldOn() throws {
        let session = SessionID(high: 6, low: 6)
        var (bob, own, first) = try self.accepted(session)
        bob.frame(.sessionEnd(session), on: first)
        let second = try bob.prove(self.alice)
        _ = bob.sent(on: second)
        bob.frame(.sessionResume(session), on: second)
        #expect(bob.sent(on: second) == [.sessionEnd(session)])
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == .failed)
        #expect(bob.core.sessions.isEmpty && bob.sessionsOnDisk.isEmpty)
    }

    /// The peer has left the session and invites this machine. This side's invitation, already answered, does not prevent that.
    @Test func aPeerThatHasAcceptedAndLeftMayInvite() throws {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        var bob = CoreBench(low)
        let link = try bob.prove(high)
        let own = try #require(bob.call(.invite(high.description, context: [], timeout: nil))?.invitation)
        bob.isDiskHeld = true
        let session = SessionID(high: 6, low: 6)
        bob.frame(.inviteAnswer(InviteAnswer(id: own.id, decision: .accepted(session))), on: link)
        bob.frame(.sessionEnd(session), on: link)
        let theirs = bob.invite(on: link)
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == .failed)
        #expect(bob.pending == [theirs] && bob.inviteAnswer(on: link) == nil)
    }

    /// The connection still has an invitation of the lower id, which no user here sees (any more), and would drop this side's own.
    @Test(arguments: [false, true]) func whatTheConnectionWouldDropIsSentLater(isHidden: Bool) throws {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        var bob = CoreBench(high) { $0.policy.pairedOnly = isHidden }
        let link = try bob.prove(low)
        let theirs = InvitationID(high: 1, low: 1)
        bob.frame(.invite(Invite(id: theirs, timeoutMilliseconds: isHidden ? 60_000 : 100, context: [])), on: link)
        bob.advance(.milliseconds(100))
        let own = try #require(bob.call(.invite(low.description, context: [], timeout: nil))?.invitation)
        #expect(bob.sent(on: link) == [])
        if isHidden {
            bob.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        } else {
            bob.frame(.inviteWithdraw(InviteWithdraw(id: theirs, reason: .timedOut)), on: link)
        }
        #expect(bob.invites(on: link) == [own.id])
    }

    /// The inviter was restarted, or has withdrawn its invitation while the connection was lost.
    @Test func anInviterThatAsksAnewOnAnotherConnectionTakesItsFirstBack() throws {
        var bob = CoreBench()
        let former = bob.invite(on: try bob.prove(self.alice))
        let link = try bob.prove(self.alice)
        let latter = bob.invite(on: link)
        #expect(try bob.invitation(former).state == .cancelled)
        #expect(bob.pending == [latter] && bob.sent(on: link) == [])
        // On the same connection, a second invitation does not withdraw the first.
        let busy = bob.invite(on: link)
        #expect(bob.pending == [latter] && bob.sent(on: link) == [.inviteAnswer(InviteAnswer(id: busy, decision: .busy))])
    }

    /// The connection is lost while the disk is busy, and a dial finds another key. The session stays all the same.
    @Test func oneThatWasAcceptedFailsByNoDial() throws {
        let session = SessionID(high: 6, low: 6)
        var (bob, own, link) = try self.accepted(session)
        try bob.see(self.alice)
        bob.lose(link)
        bob.advance(EarshotLimits.higherPeerDialDelay)
        #expect(bob.dials == [self.alice])
        bob.handle(.dial(self.alice, .ended(EarshotError(.identityMismatch, "another key answered"))))
        #expect(try bob.invitation(own.id).state == .pending)
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == .accepted)
        #expect(bob.core.sessions.map(\.id) == [session])
    }

    /// A dial to an address that belongs to another machine now fails after the peer's own connection was established.
    @Test func oneThatWasSentFailsByNoDial() throws {
        var bob = CoreBench()
        try bob.see(self.alice)
        let own = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        let link = try bob.prove(self.alice)
        #expect(bob.dials == [self.alice] && bob.invites(on: link) == [own.id])
        bob.handle(.dial(self.alice, .ended(EarshotError(.identityMismatch, "another key answered"))))
        #expect(bob.pending == [own.id])
        let session = SessionID(high: 6, low: 6)
        bob.frame(.inviteAnswer(InviteAnswer(id: own.id, decision: .accepted(session))), on: link)
        #expect(try bob.invitation(own.id).state == .accepted)
        #expect(bob.core.sessions.map(\.id) == [session])
    }

    /// The peer is off, and another machine has its address. Requests to the peer wait, and the final error names that machine.
    @Test(arguments: [true, false]) func oneToAPeerWhoseAddressIsAnotherMachinesWaits(isSeen: Bool) throws {
        let other = PeerAddress(host: "10.77.0.9", zone: nil, port: 47110)
        var bob = CoreBench()
        try bob.see(peerID(3), name: "carol", at: "10.77.0.3")
        try bob.see(self.alice)
        if !isSeen {
            bob.call(.setTrust(.trusted, self.alice.description, until: nil))
            let link = try bob.prove(self.alice, isInitiator: true)
            bob.lose(link)
            bob.handle(.discovery(.reset(.avahi)))
            try bob.see(peerID(3), name: "carol", at: "10.77.0.3")
        }
        let own = try #require(bob.call(.invite(self.alice.description, context: [], timeout: .seconds(60)))?.invitation)
        let answer = AnotherAnswers(at: other, id: peerID(3))
        for number in 1...3 {
            #expect(bob.dials.count == number, "it is looked for again")
            bob.handle(.dial(self.alice, .ended(EarshotError(.identityMismatch, answer.description, underlying: answer))))
            #expect(bob.pending == [own.id])
            bob.advance(EarshotLimits.redialDelays[number])
        }
        bob.advance(.seconds(60))
        let end = try bob.invitation(own.id)
        #expect(end.state == .timedOut && end.error == .timedOut)
        #expect(end.errorMessage?.contains("another machine, carol (\(peerID(3))), answers at 10.77.0.9:47110") == true, "\(end)")
    }

    /// The peer restarted while the acceptance of its invitation was being written, and knows only this side's invitation.
    @Test func oneThatCrossedIsTakenBackFromAPeerThatHasItAlone() throws {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        var bob = CoreBench(high)
        let first = try bob.prove(low)
        let own = try #require(bob.call(.invite(low.description, context: [], timeout: nil))?.invitation)
        bob.isDiskHeld = true
        bob.invite(on: first)
        bob.lose(first)
        let second = try bob.prove(low)
        #expect(bob.invites(on: second) == [own.id])
        bob.releaseDisk()
        #expect(try bob.invitation(own.id).state == .accepted)
        #expect(bob.sent(on: second).contains(.inviteWithdraw(InviteWithdraw(id: own.id, reason: .withdrawn))))
    }

    /// The ids of other peers' invitations have no effect.
    @Test func anotherPeersInvitationCannotBeAnswered() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let mallory = try bob.prove(peerID(2), from: [10, 77, 0, 3])
        let sent = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(SessionID(high: 6, low: 6)))), on: mallory)
        #expect(bob.core.sessions.isEmpty)
        let incoming = bob.invite(on: mallory)
        bob.frame(.inviteWithdraw(InviteWithdraw(id: incoming, reason: .withdrawn)), on: link)
        #expect(bob.pending == [sent.id, incoming])
        bob.invite(incoming, on: link)
        #expect(bob.inviteAnswer(on: link) == nil)
    }

    @Test func aSessionThatIsAnotherPeersIsNotTakenUp() throws {
        var bob = CoreBench()
        let first = try bob.prove(self.alice)
        let session = try bob.join(on: first)
        let link = try bob.prove(peerID(2), from: [10, 77, 0, 3])
        let sent = try #require(bob.call(.invite(peerID(2).description, context: [], timeout: nil))?.invitation)
        bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))), on: link)
        #expect(try bob.invitation(sent.id).error == .protocolViolation)
        #expect(bob.sent(on: link).last == .sessionEnd(session))
        #expect(bob.core.sessions.map(\.members.first?.peerID) == [self.alice])
    }

    @Test func decidedInvitationsAboveTheLimitAreForgotten() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let limit = EarshotLimits.decidedInvitations
        var ids: [InvitationID] = []
        for _ in 0...limit {
            let invitation = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
            ids.append(invitation.id)
            bob.call(.withdraw(invitation.id))
        }
        #expect(bob.core.invitations(all: true).map(\.id) == Array(ids.dropFirst()), "the oldest has gone")
        let pending = bob.invite(on: link)
        #expect(bob.core.invitations(all: true).count == limit + 1 && bob.pending == [pending])
    }
}
