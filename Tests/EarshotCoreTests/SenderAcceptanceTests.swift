import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Sending to a peer whose invitation waits here accepts that invitation, instead of a crossing invitation of this side.
@Suite struct SenderAcceptanceTests {
    private static let bob = peerID(1)
    private static let full = EarshotError(.storage, "the disk is full")

    /// The kinds of data that invite a peer to a session.
    enum Sending: CaseIterable { case message, queuedMessage, stream, file, queuedFile }

    /// The party that is already deciding about the invitation.
    enum Decider: CaseIterable { case sender, person, settings }

    /// Returns a bench with bob, who is trusted and connected, and whose invitation waits for the user.
    private func bench() throws -> (alice: CoreBench, link: LinkID, invitation: InvitationID) {
        var alice = CoreBench { $0.policy.fromTrusted = .ask }
        alice.call(.setTrust(.trusted, Self.bob.description, until: nil))
        let link = try alice.prove(Self.bob, name: "bob")
        let invitation = alice.invite(on: link)
        #expect(alice.pending == [invitation] && alice.sent(on: link) == [])
        return (alice, link, invitation)
    }

    private func send(_ sending: Sending, by alice: inout CoreBench) {
        switch sending {
        case .message: alice.send(to: Self.bob)
        case .queuedMessage: alice.send(to: Self.bob, queue: true)
        case .stream: alice.call(.stream(.open(to: Self.bob.description, name: "x")))
        case .file: alice.handle(.need(Self.bob, .session))
        case .queuedFile: alice.handle(.need(Self.bob, .sessionForQueue))
        }
    }

    private func isInvite(_ frame: Frame) -> Bool { if case .invite = frame { true } else { false } }

    /// Returns the error of the last message's call.
    private func failure(of call: CallID, by alice: CoreBench) throws -> EarshotError.Code? {
        try alice.outcome(of: call)?.get().recipients.first?.error
    }

    @Test(arguments: Sending.allCases) func whatThePeerAsksIsAccepted(sending: Sending) throws {
        var (alice, link, invitation) = try self.bench()
        self.send(sending, by: &alice)
        let sent = alice.sent(on: link)
        let session = try #require(alice.core.sessions.first?.id)
        #expect(sent.first == .inviteAnswer(InviteAnswer(id: invitation, decision: .accepted(session))))
        #expect(!sent.contains(where: self.isInvite))
        #expect(try alice.invitation(invitation).state == .accepted && alice.core.invitations(all: true).count == 1)
        #expect(alice.sessionsOnDisk[Self.bob]?.id == session)
        switch sending {
        case .message, .queuedMessage: #expect(sent.contains { if case .message = $0 { true } else { false } })
        case .stream: #expect(sent.contains { if case .stream(.open) = $0 { true } else { false } })
        case .file, .queuedFile: break
        }
    }

    /// An answer is meaningless on a connection on which the invitation did not come, and the peer refuses data in a session that it does
    /// not know.
    @Test(arguments: [Sending.message, .queuedMessage, .stream]) func onANewConnectionTheSessionIsNamedFirst(sending: Sending) throws {
        var (alice, link, _) = try self.bench()
        alice.isDiskHeld = true
        alice.call(.setTrust(.trusted, peerID(2).description, until: nil))
        self.send(sending, by: &alice)
        alice.lose(link)
        let next = try alice.prove(Self.bob, name: "bob")
        _ = alice.sent(on: next)
        alice.releaseDisk()
        let session = try #require(alice.core.sessions.first?.id)
        let sent = alice.sent(on: next)
        #expect(sent.count == 3 && sent.dropFirst().first == .sessionResume(session))
    }

    /// Only one acceptance is written, by whichever party, and however much is sent meanwhile.
    @Test(arguments: Decider.allCases) func anAcceptanceOnItsWayToTheDiskIsTheOnlyOne(decider: Decider) throws {
        var (alice, link, invitation) = try self.bench()
        alice.isDiskHeld = true
        // The disk is first busy with another write.
        alice.call(.setTrust(.trusted, peerID(2).description, until: nil))
        switch decider {
        case .sender: break
        case .person: alice.call(.respond(invitation, .accept, always: false))
        case .settings:
            alice.frame(.inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn)), on: link)
            alice.handle(.settings(CoreSettings()))
            invitation = alice.invite(on: link)
        }
        self.send(.message, by: &alice)
        let call = alice.lastCall
        for sending in Sending.allCases { self.send(sending, by: &alice) }
        if decider != .settings { #expect(alice.call(.respond(invitation, .reject, always: false))?.error == .conflict) }
        #expect(alice.core.decisions.count == 2 && alice.outcome(of: call) == nil)
        alice.releaseDisk()
        let sent = alice.sent(on: link)
        #expect(try alice.invitation(invitation).state == .accepted && !sent.contains(where: self.isInvite))
        #expect(sent.count { if case .inviteAnswer = $0 { true } else { false } } == 1)
        #expect(sent.count { if case .message = $0 { true } else { false } } == 3)
    }

    /// Data with a waiting caller fails. Queued data waits for the next session, and the invitation for the user.
    @Test(arguments: Decider.allCases) func anAcceptanceThatCannotBeWrittenEndsWhatWaits(decider: Decider) throws {
        var (alice, link, invitation) = try self.bench()
        alice.isDiskHeld = true
        if decider == .person { alice.call(.respond(invitation, .accept, always: false)) }
        if decider == .settings {
            alice.frame(.inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn)), on: link)
            alice.handle(.settings(CoreSettings()))
            invitation = alice.invite(on: link)
        }
        self.send(.message, by: &alice)
        let message = alice.lastCall
        self.send(.stream, by: &alice)
        let stream = alice.lastCall
        alice.diskError = Self.full
        alice.releaseDisk()
        #expect(try self.failure(of: message, by: alice) == .notConnected)
        #expect(alice.answers[stream]?.failure?.message == "the invitation of bob could not be accepted: the disk is full")
        #expect(alice.core.sessions.isEmpty && !alice.sent(on: link).contains(where: self.isInvite))
        // If the settings cannot accept an invitation, it is declined without asking the user.
        guard decider != .settings else { return #expect(alice.pending == []) }
        #expect(alice.pending == [invitation])
        self.send(.message, by: &alice)
        #expect(try alice.invitation(invitation).state == .accepted)
    }

    @Test func whatIsQueuedWaitsForTheNextTime() throws {
        var alice = CoreBench { $0.policy.fromTrusted = .ask }
        alice.call(.setTrust(.trusted, Self.bob.description, until: nil))
        alice.send(to: Self.bob, queue: true)
        let link = try alice.prove(Self.bob, name: "bob")
        let own = try #require(alice.invites(on: link).first)
        alice.call(.withdraw(own))
        let invitation = alice.invite(on: link)
        alice.diskError = Self.full
        alice.advance(EarshotLimits.queueInvitationInterval)
        #expect(alice.diskError == nil, "it was to be accepted")
        #expect(alice.pending == [invitation] && alice.messages(on: link).isEmpty)
        alice.advance(EarshotLimits.queueInvitationInterval)
        #expect(try alice.invitation(invitation).state == .accepted)
        #expect(alice.messages(on: link).count == 1)
    }

    /// The peer has withdrawn its invitation while the disk was busy: it is invited for the data instead.
    @Test func whereItIsOverMeanwhileThePeerIsInvited() throws {
        var (alice, link, invitation) = try self.bench()
        alice.isDiskHeld = true
        self.send(.message, by: &alice)
        let call = alice.lastCall
        alice.frame(.inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn)), on: link)
        alice.releaseDisk()
        #expect(alice.sessionsOnDisk[Self.bob] == nil && alice.outcome(of: call) == nil)
        let own = try #require(alice.invites(on: link).first)
        let session = SessionID(high: 1, low: 2)
        alice.frame(.inviteAnswer(InviteAnswer(id: own, decision: .accepted(session))), on: link)
        #expect(alice.messages(on: link).map(\.session) == [session])
    }

    /// Sending invites only trusted peers, and this peer is no longer trusted when its turn comes.
    @Test func trustThatEndsMeanwhileLeavesItToAPerson() throws {
        var (alice, link, invitation) = try self.bench()
        alice.isDiskHeld = true
        alice.call(.setTrust(.unknown, Self.bob.description, until: nil))
        self.send(.message, by: &alice)
        let message = alice.lastCall
        self.send(.stream, by: &alice)
        let stream = alice.lastCall
        alice.releaseDisk()
        #expect(try self.failure(of: message, by: alice) == .notConnected)
        #expect(alice.answers[stream]?.error == .notConnected)
        #expect(alice.core.sessions.isEmpty && alice.pending == [invitation] && alice.sent(on: link) == [])
        #expect(alice.call(.respond(invitation, .accept, always: false))?.invitation?.state == .accepted)
    }

    /// The trust ends while the acceptance is being written.
    @Test(arguments: [Decider.sender, .settings]) func trustThatEndsWhileTheDiskIsBusyLeavesItToAPerson(decider: Decider) throws {
        var alice = CoreBench { $0.policy.fromTrusted = decider == .settings ? .accept : .ask }
        alice.call(.setTrust(.trusted, Self.bob.description, until: alice.now.wall + .seconds(60)))
        let link = try alice.prove(Self.bob, name: "bob")
        alice.isDiskHeld = true
        let invitation = alice.invite(on: link)
        if decider == .sender { self.send(.message, by: &alice) }
        alice.advance(.seconds(61))
        alice.releaseDisk()
        #expect(alice.core.sessions.isEmpty && alice.sessionsOnDisk.isEmpty && alice.peersOnDisk[Self.bob]?.trust == .unknown)
        #expect(alice.pending == [invitation] && alice.inviteAnswer(on: link) == nil)
        #expect(alice.call(.respond(invitation, .accept, always: false))?.invitation?.state == .accepted)
    }

    /// The settings were to accept the invitation first. Finding that it is being answered is no failure.
    @Test func aPersonsAcceptanceBehindTheSettingsIsWaitedFor() throws {
        var alice = CoreBench()
        alice.call(.setTrust(.trusted, Self.bob.description, until: nil))
        let link = try alice.prove(Self.bob, name: "bob")
        alice.isDiskHeld = true
        alice.call(.setTrust(.trusted, peerID(2).description, until: nil))
        let invitation = alice.invite(on: link)
        alice.call(.respond(invitation, .accept, always: false))
        self.send(.message, by: &alice)
        let message = alice.lastCall
        alice.releaseDisk()
        #expect(try alice.invitation(invitation).state == .accepted)
        #expect(alice.messages(on: link).count == 1 && alice.outcome(of: message) == nil)
    }

    /// The user blocks the inviting peer, and data is sent to it while the block is being written.
    @Test(arguments: [false, true]) func blockingMeanwhileEndsWhatWaits(isFull: Bool) throws {
        var (alice, link, invitation) = try self.bench()
        alice.isDiskHeld = true
        alice.call(.respond(invitation, .block, always: false))
        self.send(.stream, by: &alice)
        let stream = alice.lastCall
        if isFull { alice.diskError = Self.full }
        alice.releaseDisk()
        #expect(alice.answers[stream]?.error == .notConnected)
        #expect(alice.core.sessions.isEmpty && alice.pending == (isFull ? [invitation] : []))
        #expect(!alice.sent(on: link).contains(where: self.isInvite))
    }
}
