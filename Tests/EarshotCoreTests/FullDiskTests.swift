import EarshotWire
import Testing

@testable import EarshotCore

/// Decisions that are being written, and their effects if the disk refuses them or is slow.
@Suite struct FullDiskTests {
    private static let peer = peerID(1)
    private static let invitation = InvitationID(high: 0, low: 7)
    private static let full = EarshotError(.storage, "the disk is full")

    private var core = NodeCore.bench()

    private mutating func on(_ input: Input, after time: Duration = .zero) -> [Effect] {
        var effects: [Effect] = []
        self.core.handle(input, at: Now(after: time), into: &effects)
        return effects
    }

    private mutating func connect(_ link: UInt64 = 1, transport: TransportKind = .tls) throws {
        let facts = try LinkFacts.of(Self.peer, transport: transport)
        _ = self.on(.link(LinkID(number: link), .proven(facts, isOtherDead: false)))
    }

    private mutating func invited(after time: Duration = .zero) -> [Effect] {
        let invite = Invite(id: Self.invitation, timeoutMilliseconds: 30_000, context: [])
        return self.on(.link(LinkID(number: 1), .frame(.invite(invite))), after: time)
    }

    private mutating func call(_ command: Command) -> [Effect] { self.on(.call(CallID(number: 1), command)) }

    private func commits(in effects: [Effect]) -> [(id: CommitID, operations: [StoreOperation])] {
        effects.compactMap { if case .commit(let id, let operations) = $0 { (id, operations) } else { nil } }
    }

    private func answers(in effects: [Effect]) -> [Answer] {
        effects.compactMap { if case .answer(_, let answer) = $0 { answer } else { nil } }
    }

    private func frames(in effects: [Effect]) -> [Frame] {
        effects.flatMap { effect -> [Frame] in if case .send(_, let frames) = effect { frames } else { [] } }
    }

    // MARK: Refused writes

    /// After the failed write, another session that the peer has accepted can begin.
    @Test mutating func anAcceptanceThatCouldNotBeWrittenStandsInNobodysWay() throws {
        try self.connect()
        _ = self.invited()
        let commit = try #require(self.commits(in: self.call(.respond(Self.invitation, .accept, always: false))).first)
        #expect(self.answers(in: self.on(.committed(commit.id, Self.full))) == [.failure(Self.full)])
        #expect(self.core.figures.agreements == 0 && self.core.figures.decidingInvitations == 0)
        let withdraw = InviteWithdraw(id: Self.invitation, reason: .withdrawn)
        _ = self.on(.link(LinkID(number: 1), .frame(.inviteWithdraw(withdraw))))
        _ = self.call(.invite(Self.peer.description, context: [], timeout: nil))
        let own = try #require(self.core.invitations(all: false).first)
        let session = SessionID(high: 0, low: 9)
        let effects = self.on(.link(LinkID(number: 1), .frame(.inviteAnswer(InviteAnswer(id: own.id, decision: .accepted(session))))))
        #expect(self.frames(in: effects) == [])
        #expect(self.core.facts(of: Self.peer)?.session == session)
    }

    /// The invitation ends at once, and is not decided again and again.
    @Test mutating func whatTheSettingsCouldNotAcceptIsOver() throws {
        self.core = .bench { $0.policy.fromUnknown = .accept }
        try self.connect()
        let commit = try #require(self.commits(in: self.invited()).first)
        let effects = self.on(.committed(commit.id, Self.full))
        #expect(self.frames(in: effects) == [.inviteAnswer(InviteAnswer(id: Self.invitation, decision: .declined))])
        #expect(self.core.invitations(all: true).map(\.state) == [.failed])
        #expect(self.core.figures.agreements == 0 && self.core.figures.decidingInvitations == 0)
    }

    /// The session has ended in memory, and does not return at the next start.
    @Test mutating func whatCouldNotBeWrittenIsWrittenLater() throws {
        let session = StoredSession(id: SessionID(high: 0, low: 9), members: [self.core.id, Self.peer], createdAt: Now(after: .zero).wall)
        self.core.load([], [session])
        try self.connect()
        let first = try #require(self.commits(in: self.on(.link(LinkID(number: 1), .frame(.sessionEnd(session.id))))).first)
        #expect(self.commits(in: self.on(.committed(first.id, Self.full))).isEmpty)
        #expect(self.commits(in: self.on(.deadline, after: EarshotLimits.keepPause - .nanoseconds(1))).isEmpty)
        let second = try #require(self.commits(in: self.on(.deadline, after: EarshotLimits.keepPause)).first)
        #expect(second.operations == [.removeSession(with: Self.peer), .removePeer(Self.peer)])
        _ = self.on(.committed(second.id, nil), after: EarshotLimits.keepPause)
        #expect(self.commits(in: self.on(.deadline, after: .seconds(40))).isEmpty)
    }

    /// The disk has stored neither a session nor its end. Its remains are removed when the next session begins.
    @Test mutating func whatASessionLeftGoesWithTheNext() throws {
        try self.connect()
        _ = self.call(.invite(Self.peer.description, context: [], timeout: nil))
        let own = try #require(self.core.invitations(all: false).first)
        let answer = InviteAnswer(id: own.id, decision: .accepted(SessionID(high: 0, low: 9)))
        let joining = try #require(self.commits(in: self.on(.link(LinkID(number: 1), .frame(.inviteAnswer(answer))))).first)
        let ending = try #require(self.commits(in: self.on(.committed(joining.id, Self.full))).first)
        #expect(ending.operations.first == .removeSession(with: Self.peer))
        _ = self.on(.committed(ending.id, Self.full))
        _ = self.invited()
        let next = try #require(self.commits(in: self.call(.respond(Self.invitation, .accept, always: false))).first)
        #expect(next.operations.first == .removeSession(with: Self.peer))
        _ = self.on(.committed(next.id, nil))
        let later = try #require(self.commits(in: self.on(.deadline, after: EarshotLimits.keepPause)).first)
        #expect(!later.operations.contains(.removeSession(with: Self.peer)))
    }

    // MARK: Notes during a write

    /// The peer was trusted by its id and has used TLS before the trust was on disk. After the next start, it must not be accepted in
    /// plaintext.
    @Test mutating func whatIsNotedWhileTheDiskIsBusyIsWrittenToo() throws {
        let first = try #require(self.commits(in: self.call(.setTrust(.trusted, Self.peer.description, until: nil))).first)
        try self.connect()
        let second = try #require(self.commits(in: self.on(.committed(first.id, nil))).first)
        let stored = try #require(self.core.keptPeers.first)
        #expect(second.operations == [.putPeer(stored)])
        #expect(stored.isTLSPinned && stored.isProven && stored.trust == .trusted)
        #expect(self.commits(in: self.on(.committed(second.id, nil))).isEmpty)
    }

    /// The stranger has disconnected before the user's report had its turn at the disk.
    @Test mutating func aStrangerWhoseDigitsDifferedIsRememberedThoughItHasGone() throws {
        try self.connect()
        let call = CallID(number: 2)
        self.core.enter(Self.peer, .ready, digits: "123456", for: .seconds(60))
        let first = try #require(self.commits(in: self.call(.setTrust(.trusted, peerID(2).description, until: nil))).first)
        _ = self.on(.call(call, .endVerification(Self.peer.description, mismatch: true)))
        _ = self.on(.link(LinkID(number: 1), .closed(.lost)))
        #expect(self.core.facts(of: Self.peer) == nil)
        let second = try #require(self.commits(in: self.on(.committed(first.id, nil))).first)
        _ = self.on(.committed(second.id, nil))
        #expect(self.core.keptPeers.first { $0.id == Self.peer }?.verified == .mismatched)
    }

    // MARK: Inviters that restart

    /// The inviter has forgotten its invitation, and ignores an answer to it. Naming the session makes the inviter reject the session.
    @Test mutating func aSessionIsNamedWhereItsInvitationCameOnAnotherConnection() throws {
        try self.connect(1)
        _ = self.invited()
        _ = self.on(.link(LinkID(number: 1), .closed(.lost)))
        try self.connect(2)
        let commit = try #require(self.commits(in: self.call(.respond(Self.invitation, .accept, always: false))).first)
        let effects = self.on(.committed(commit.id, nil))
        let session = try #require(self.core.facts(of: Self.peer)?.session)
        let answer = InviteAnswer(id: Self.invitation, decision: .accepted(session))
        #expect(self.frames(in: effects) == [.inviteAnswer(answer), .sessionResume(session)])
        _ = self.on(.link(LinkID(number: 2), .frame(.sessionEnd(session))))
        #expect(self.core.facts(of: Self.peer)?.session == nil)
    }

    // MARK: Blocked peers

    @Test mutating func aBlockedPeerIsNotInvitedForWhatIsSentToIt() throws {
        let commit = try #require(self.commits(in: self.call(.setTrust(.blocked, Self.peer.description, until: nil))).first)
        _ = self.on(.committed(commit.id, nil))
        #expect(self.on(.need(Self.peer, .session)) == [])
        #expect(self.core.invitations(all: true).isEmpty)
    }

    /// Nothing is sent on a closed connection, and the charge is released all the same.
    @Test mutating func aBlockedPeerThatHasGoneIsAnsweredNoMore() throws {
        let commit = try #require(self.commits(in: self.call(.setTrust(.blocked, Self.peer.description, until: nil))).first)
        _ = self.on(.committed(commit.id, nil))
        try self.connect()
        let holds = self.invited().compactMap { if case .hold(let hold, _, _) = $0 { hold } else { nil } }
        _ = self.on(.link(LinkID(number: 1), .closed(.lost)))
        #expect(holds.count == 1)
        #expect(self.on(.deadline, after: .seconds(4)) == holds.map { .release($0) })
    }
}
