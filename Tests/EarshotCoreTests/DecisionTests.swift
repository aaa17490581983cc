import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Decisions about one peer while the disk is busy: each takes effect as if it had been made after the one before, in memory and on disk.
@Suite struct DecisionTests {
    private let alice = peerID(1)

    private func expect(_ trust: Trust, inSession: Bool, by bob: CoreBench, _ comment: Comment = "") throws {
        for bench in [bob, bob.restarted()] {
            #expect(try bench.peer(self.alice).trust == trust, comment)
            #expect(bench.core.sessions.isEmpty != inSession, comment)
        }
        #expect(bob.holds.isEmpty && bob.core.decisions.count == 0)
    }

    @Test(arguments: [true, false]) func blockingStandsAgainstAccepting(acceptsFirst: Bool) throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.isDiskHeld = true
        let commands: [Command] = [.respond(id, .accept, always: true), .setTrust(.blocked, self.alice.description, until: nil)]
        var calls: [CallID] = []
        for command in acceptsFirst ? commands : commands.reversed() {
            bob.call(command)
            calls.append(bob.lastCall)
        }
        #expect(calls.allSatisfy { bob.answers[$0] == nil }, "not before it is on disk")
        bob.releaseDisk()
        let accepted = bob.answers[calls[acceptsFirst ? 0 : 1]]
        #expect(acceptsFirst ? accepted?.invitation?.state == .accepted : accepted?.error == .conflict)
        #expect(bob.answers[calls[acceptsFirst ? 1 : 0]]?.peer?.trust == .blocked)
        try self.expect(.blocked, inSession: false, by: bob)
    }

    /// The inviter withdraws the invitation while the acceptance is being written. A call that fails with `conflict` has changed nothing.
    @Test(arguments: [true, false]) func whatWasWithdrawnMeanwhileLeavesNothing(always: Bool) throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.isDiskHeld = true
        bob.call(.respond(id, .accept, always: always))
        let call = bob.lastCall
        bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)), on: link)
        #expect(try bob.invitation(id).state == .cancelled)
        bob.releaseDisk()
        #expect(bob.answers[call]?.error == .conflict)
        #expect(bob.core.sessions.isEmpty)
        #expect(try bob.peer(self.alice).trust == .unknown)
        #expect(bob.peersOnDisk.isEmpty && bob.sessionsOnDisk.isEmpty)
        #expect(bob.inviteAnswer(on: link) == nil)
    }

    /// The withdrawal waits for its turn while the acceptance is written. The connection has already read the withdrawal, and has not
    /// written the answer. The inviter has no session, so that none is kept here.
    @Test(arguments: [InviteWithdraw.Reason.withdrawn, .timedOut]) func whatWasWithdrawnBeforeItsAnswerWasWrittenIsNoSession(
        reason: InviteWithdraw.Reason
    ) throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        let accepted = bob.call(.respond(id, .accept, always: false))?.invitation
        let session = try #require(accepted?.sessionID)
        _ = bob.sent(on: link)
        bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: reason)), on: link)
        #expect(bob.sent(on: link) == [.sessionEnd(session)])
        try self.expect(.unknown, inSession: false, by: bob)
        // The next invitation is handled as usual.
        let next = bob.invite(on: link)
        #expect(bob.pending == [next])
    }

    /// The invitation led to no session, or its session has been replaced: the present session stays.
    @Test func aLateWithdrawalEndsNoOtherSession() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let first = bob.invite(on: link)
        let session = try #require(bob.call(.respond(first, .accept, always: false))?.invitation?.sessionID)
        bob.frame(.sessionEnd(session), on: link)
        let second = bob.invite(on: link)
        let standing = bob.call(.respond(second, .accept, always: false))?.invitation?.sessionID
        bob.frame(.inviteWithdraw(InviteWithdraw(id: first, reason: .withdrawn)), on: link)
        #expect(bob.core.sessions.map(\.id) == [standing])
    }

    /// The disk refuses to undo the acceptance. The caller's call fails only when the acceptance is undone on disk too.
    @Test(arguments: [true, false]) func anAcceptanceIsUndoneBeforeItIsTold(stops: Bool) throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.isDiskHeld = true
        bob.call(.respond(id, .accept, always: true))
        let call = bob.lastCall
        bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)), on: link)
        bob.writeNext()
        bob.diskError = EarshotError(.storage, "the disk is full")
        bob.releaseDisk()
        #expect(bob.answers[call] == nil && bob.peersOnDisk[self.alice]?.trust == .trusted)
        if stops { bob.handle(.stop) } else { bob.advance(EarshotLimits.keepPause) }
        #expect(bob.answers[call]?.error == .conflict)
        #expect(bob.peersOnDisk.isEmpty && bob.sessionsOnDisk.isEmpty)
    }

    /// A session that has ended must not return at the next start.
    @Test func whatTheDiskHasRefusedIsWrittenBeforeTheEnd() throws {
        var (bob, link, session) = try CoreBench.inSession(with: self.alice)
        bob.diskError = EarshotError(.storage, "the disk is full")
        bob.frame(.sessionEnd(session), on: link)
        #expect(bob.sessionsOnDisk[self.alice]?.id == session)
        bob.handle(.stop)
        #expect(bob.sessionsOnDisk.isEmpty && bob.peersOnDisk.isEmpty && bob.restarted().core.sessions.isEmpty)
    }

    /// If the disk is full, nothing has changed, and the invitation stays pending.
    @Test func anAcceptanceThatCannotBeKept() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.diskError = EarshotError(.storage, "the disk is full")
        #expect(bob.call(.respond(id, .accept, always: true))?.error == .storage)
        #expect(bob.pending == [id] && bob.inviteAnswer(on: link) == nil && bob.core.sessions.isEmpty)
        #expect(bob.call(.respond(id, .accept, always: true))?.invitation?.state == .accepted)
        try self.expect(.trusted, inSession: true, by: bob)
    }

    @Test(arguments: [Trust.blocked, .unknown]) func trustThatCannotBeTakenBackStays(trust: Trust) throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        _ = try bob.join(on: link)
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        _ = bob.sent(on: link)
        bob.diskError = EarshotError(.storage, "the disk is full")
        #expect(bob.call(.setTrust(trust, self.alice.description, until: nil))?.error == .storage)
        #expect(bob.sent(on: link) == [])
        try self.expect(.trusted, inSession: true, by: bob)
    }

    @Test func aSessionThatCannotBeLeftStays() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let session = try bob.join(on: link)
        bob.diskError = EarshotError(.storage, "the disk is full")
        #expect(bob.call(.leave(session))?.error == .storage)
        #expect(bob.core.sessions.map(\.id) == [session])
        #expect(bob.call(.leave(session)) == .done)
        #expect(bob.sent(on: link).last == .sessionEnd(session))
        #expect(bob.call(.leave(session))?.error == .notFound)
    }

    /// If the settings were about to accept an invitation, and its peer is no longer trusted at its turn, a user has to decide.
    @Test func settingsAcceptByWhatIsThereWhenItsTurnComes() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        let link = try bob.prove(self.alice)
        bob.isDiskHeld = true
        bob.call(.setTrust(.unknown, self.alice.description, until: nil))
        let id = bob.invite(on: link)
        bob.releaseDisk()
        #expect(bob.pending == [id])
        #expect(bob.core.invitations[id]?.isDeciding == false)
        #expect(bob.core.sessions.isEmpty && bob.inviteAnswer(on: link) == nil)
    }

    /// If a trusted peer invites and withdraws repeatedly while the disk is busy, only one decision about it waits, and the last state
    /// counts.
    @Test func invitingAndWithdrawingCostsOneTurn() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        let link = try bob.prove(self.alice)
        bob.isDiskHeld = true
        for _ in 0..<500 {
            let id = bob.invite(on: link)
            bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)), on: link)
        }
        let last = bob.invite(on: link)
        // The decision that is being written, and the one after it.
        #expect(bob.core.decisions.count <= 2 && bob.holds.count <= 2)
        bob.releaseDisk()
        let answer = bob.inviteAnswer(on: link)
        #expect(answer?.id == last)
        #expect(answer?.decision == bob.core.sessions.first.map { .accepted($0.id) })
        try self.expect(.trusted, inSession: true, by: bob)
    }

    @Test func theLaterOfTwoWordsAboutTrustStands() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        _ = try bob.join(on: link)
        bob.isDiskHeld = true
        for trust in [Trust.blocked, .unknown, .trusted] { bob.call(.setTrust(trust, self.alice.description, until: nil)) }
        bob.releaseDisk()
        try self.expect(.trusted, inSession: false, by: bob)
    }

    /// Notes about a peer while a decision is being written do not undo the decision.
    @Test func whatIsNotedMeanwhileUndoesNothing() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        _ = try bob.join(on: link)
        bob.isDiskHeld = true
        bob.call(.setTrust(.blocked, self.alice.description, until: nil))
        bob.advance(.seconds(6))
        _ = try bob.prove(self.alice, name: "another name")
        bob.releaseDisk()
        try self.expect(.blocked, inSession: false, by: bob)
    }

    /// A session begins when it is on disk, and not before. The peer is told then.
    @Test func anAcceptanceIsOnDiskBeforeThePeerHearsOfIt() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.isDiskHeld = true
        bob.call(.respond(id, .accept, always: false))
        #expect(bob.inviteAnswer(on: link) == nil && bob.core.sessions.isEmpty)
        #expect(bob.call(.respond(id, .reject, always: false))?.error == .conflict, "it is being answered")
        bob.releaseDisk()
        #expect(bob.inviteAnswer(on: link)?.decision == bob.sessionsOnDisk[self.alice].map { .accepted($0.id) })
    }

    /// If the acceptance of this side's invitation cannot be written, the session ends for both sides.
    @Test func aSessionThatCannotBeKeptEnds() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let sent = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.diskError = EarshotError(.storage, "the disk is full")
        let session = SessionID(high: 1, low: 2)
        bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))), on: link)
        #expect(bob.sent(on: link).last == .sessionEnd(session))
        #expect(try bob.invitation(sent.id).state == .failed)
        #expect(bob.core.sessions.isEmpty && bob.sessionsOnDisk.isEmpty && bob.peersOnDisk.isEmpty)
    }

    /// The peer accepts while a user's trust in it is being written, and the disk has no room for the session.
    @Test func trustOutlivesASessionThatCannotBeKept() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let sent = try #require(bob.call(.invite(self.alice.description, context: [], timeout: nil))?.invitation)
        bob.isDiskHeld = true
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        let call = bob.lastCall
        bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(SessionID(high: 1, low: 2)))), on: link)
        bob.writeNext()
        #expect(bob.answers[call]?.peer?.trust == .trusted)
        bob.diskError = EarshotError(.storage, "the disk is full")
        bob.releaseDisk()
        #expect(try bob.invitation(sent.id).state == .failed)
        try self.expect(.trusted, inSession: false, by: bob)
    }

    /// The peer's own invitation led to that session, and was reported as accepted.
    @Test func aSessionThatIsOnDiskAlreadyStays() throws {
        let (low, high) = (min(peerID(1), peerID(2)), max(peerID(1), peerID(2)))
        var bob = CoreBench(high)
        let link = try bob.prove(low)
        let sent = try #require(bob.call(.invite(low.description, context: [], timeout: nil))?.invitation)
        bob.isDiskHeld = true
        bob.call(.setTrust(.trusted, peerID(3).description, until: nil))
        let theirs = bob.invite(on: link)
        let session = SessionID(high: 1, low: 2)
        bob.frame(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))), on: link)
        bob.writeNext()
        bob.writeNext()
        #expect(try [sent.id, theirs].map { try bob.invitation($0).sessionID } == [session, session])
        bob.diskError = EarshotError(.storage, "the disk is full")
        bob.releaseDisk()
        for bench in [bob, bob.restarted()] { #expect(bench.core.sessions.map(\.id) == [session]) }
        #expect(try bob.invitation(sent.id).state == .accepted && bob.peersOnDisk[low]?.isDecided == true)
    }

    @Test func nothingBeginsWhileItStops() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let id = bob.invite(on: link)
        bob.call(.awaitInvitation(id))
        let waiting = bob.lastCall
        bob.handle(.stop)
        for command in [
            Command.invite(self.alice.description, context: [], timeout: nil), .respond(id, .accept, always: false),
            .setTrust(.trusted, self.alice.description, until: nil), .verify(self.alice.description, timeout: nil),
        ] { #expect(bob.call(command)?.error == .unavailable, "\(command)") }
        #expect(bob.answers[waiting] == nil)
        bob.handle(.stopped)
        #expect(bob.answers[waiting]?.invitation?.state == .pending)
    }
}
