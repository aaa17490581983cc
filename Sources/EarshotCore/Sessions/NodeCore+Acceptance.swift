import EarshotWire
import OrderedCollections

/// Accepting an invitation, and having one accepted: how a session begins.
///
/// A peer has one session, in memory and on disk. What is accepted is decided when its turn at the store comes, by what is there then, and
/// taken up when its commit comes: while it is on its way to the disk (``SessionState/agreement``) no other session with that peer begins.
extension NodeCore {
    /// What a person's acceptance of an invitation comes to now.
    func isOver(_ invitation: Invitation) -> EarshotError {
        EarshotError(.conflict, "the invitation of \(invitation.peerName) was over meanwhile", remedy: .listInvitations)
    }

    /// Whether what was accepted without a person's word would be so now: trust ends by itself, also while the disk is busy.
    func isAccepting(_ peer: PeerID, _ acceptor: Decision.Acceptor) -> Bool {
        guard let record = self.records[peer], record.sessionID == nil else { return true }
        return switch acceptor {
        case .person: true
        case .sender: record.trust == .trusted
        case .settings: self.policy(of: record).invitation().outcome == .accept
        }
    }

    /// Why an acceptance that is on disk has come to nothing.
    func whyUndone(_ invitation: Invitation) -> EarshotError {
        guard self.invitations[invitation.id]?.invitation.state == .pending else { return self.isOver(invitation) }
        return EarshotError(.conflict, "\(invitation.peerName) is not trusted any more, and a person has to answer its invitation")
    }

    /// What accepting an invitation comes to now. It stands as the peer's agreement until it is on disk, or is not to be.
    mutating func agree(
        to invitation: Invitation, isPerson: Bool, always: Bool
    ) throws(EarshotError) -> [StoreOperation] {
        let peer = invitation.peerID
        guard let record = self.records[peer] else { throw EarshotError(.notConnected, "\(invitation.peerName) is gone") }
        if always, let mismatch = self.mismatch(of: record) { throw mismatch }
        let session: StoredSession =
            if let session = record.session.session { session } else {
                StoredSession(id: self.fresh(), members: [self.id, peer], createdAt: self.now.wall)
            }
        // Decided by a person also where the settings accept it while a person's own invitation to that peer is pending.
        let agreement = Agreement(session: session, isDecided: isPerson || self.isInviting(peer), isAlways: always)
        self.records[peer]?.session.begin(agreement)
        var stored = self.storedPeer(record)
        stored.note(agreement)
        // One transaction: a session without its peer's trust would be half of what was decided.
        let rest: [StoreOperation] = record.session.isEndUnwritten ? [.removeSession(with: peer)] : []
        return rest + [.putPeer(stored), .putSession(agreement.session)]
    }

    /// It is on disk. `nil` where the invitation is over meanwhile.
    mutating func adopt(_ agreement: Agreement, acceptedBy id: InvitationID, with peer: PeerID) -> Invitation? {
        guard let record = self.records[peer], let entry = self.invitations[id], entry.invitation.state == .pending else { return nil }
        // What was noted of the peer while the disk was busy stays.
        var stored = self.storedPeer(record)
        stored.note(agreement)
        self.records[peer]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(peer, .keep) }
        let session = agreement.session
        let decided = self.resolveInvitation(id, .accepted, session: session.id, answering: .accepted(session.id))
        // An invitation that came on an earlier connection gets no answer on this one: the session is named instead, and an inviter that
        // was restarted meanwhile says that it has none.
        let isToBeNamed = entry.cameOn != record.connection
        if record.sessionID != session.id || !record.isAttached {
            self.takeUp(session, with: peer, isToBeNamed: isToBeNamed)
        } else if isToBeNamed {
            self.nameSession(to: peer)
        }
        self.ensureConnection(peer, now: true)
        return decided
    }

    // MARK: By what is sent

    /// Something is sent to a peer whose invitation waits here.
    mutating func acceptForSending(_ id: InvitationID, of peer: PeerID) {
        guard let record = self.records[peer] else { return }
        self.records[peer]?.session.awaitAcceptance()
        // Its answer may be on its way to the disk already.
        guard self.invitations[id]?.isDeciding == false, !record.session.isAcceptanceDue else { return }
        self.decide(.accept(id, of: peer, always: false, .sender))
        self.invitations.setDeciding(id, true)
    }

    /// Sending something accepts only a trusted peer's invitation, and the trust may have ended while the acceptance waited for its turn.
    func checkSender(to peer: PeerID) throws(EarshotError) {
        guard let record = self.records[peer], record.trust != .trusted else { return }
        throw EarshotError(.notConnected, "\(record.name) is not trusted any more")
    }

    /// The peer's invitation could not be accepted for something that is being sent to it: that fails. Where the peer has withdrawn its
    /// invitation, and is trusted, it is invited instead.
    mutating func acceptanceFailed(with peer: PeerID, _ error: EarshotError) {
        // Another acceptance has its turn yet: it is waited for.
        if let pending = self.invitations.pending(with: peer, .incoming), self.invitations[pending]?.isDeciding == true { return }
        guard self.records[peer]?.session.endAwaiting() == true, let record = self.records[peer], record.sessionID == nil,
            !self.isInviting(peer)
        else { return }
        guard record.trust != .trusted || self.invitations.pending(with: peer, .incoming) != nil else {
            return self.inviteUnlessUnderWay(peer)
        }
        // Its caller asked for something else, and hears what stood in its way.
        let words = "the invitation of \(record.name) could not be accepted: \(error.message)"
        self.spread(.ended(.invitation, EarshotError(.notConnected, words, underlying: error)), of: peer)
    }

    // MARK: By settings

    /// Queues accepting the peer's invitation by the settings. One such decision a peer is queued, however often it invites and withdraws.
    mutating func acceptBySettings(_ peer: PeerID) {
        guard self.records[peer]?.session.isAcceptanceDue == false else { return }
        self.records[peer]?.session.makeAcceptanceDue()
        self.decide(.acceptBySettings(peer))
    }

    /// A person has begun to trust a peer whose invitation waits here: the settings decide on it as on its next one, but a person who is
    /// asked already is not passed over where they reject it.
    mutating func acceptWaiting(of peer: PeerID) {
        guard self.undecidedInvitation(of: peer) != nil, let record = self.records[peer],
            self.policy(of: record).invitation().outcome == .accept
        else { return }
        self.acceptBySettings(peer)
    }

    /// Its turn has come.
    mutating func agreeBySettings(with peer: PeerID) throws(EarshotError) -> (Invitation, [StoreOperation]) {
        self.records[peer]?.session.acceptanceHasTurn()
        guard let invitation = self.undecidedInvitation(of: peer), let record = self.records[peer],
            self.policy(of: record).invitation().outcome == .accept
        else { throw EarshotError(.conflict, "the settings accept nothing of it any more") }
        let operations = try self.agree(to: invitation, isPerson: false, always: false)
        self.invitations.setDeciding(invitation.id, true)
        return (invitation, operations)
    }

    /// The peer's invitation that no person is answering.
    private func undecidedInvitation(of peer: PeerID) -> Invitation? {
        guard let id = self.invitations.pending(with: peer, .incoming), let entry = self.invitations[id], !entry.isDeciding else {
            return nil
        }
        return entry.invitation
    }

    /// An invitation that the settings were to accept still waits, because accepting it failed: the settings as they are now decide on it.
    mutating func followSettings(of peer: PeerID, _ error: EarshotError) {
        guard let invitation = self.undecidedInvitation(of: peer), let record = self.records[peer] else { return }
        switch self.policy(of: record).invitation().outcome {
        case .ask:
            guard !self.hasRoom(forInvitationOf: record) else { return }
            self.resolveInvitation(invitation.id, .failed, Self.tooMany, answering: .busy)
        case .reject, .hide: self.resolveInvitation(invitation.id, .declined, answering: .declined)
        case .accept:
            guard !record.session.isAcceptanceDue else { return }
            self.log(Notice(.error, "cannot accept an invitation", ["peer": peer, "error": error]))
            self.resolveInvitation(invitation.id, .failed, error, answering: .declined)
        }
    }

    /// Whether settings alone do not let one more peer in that no person trusts.
    mutating func isFull(forStranger record: PeerRecord) -> Bool {
        guard record.trust != .trusted else { return false }
        // Those on their way to the disk count too: many may come at once.
        let strangers = self.records.values.count { $0.trust != .trusted && ($0.sessionID != nil || self.isBeingAccepted($0)) }
        guard strangers >= EarshotLimits.strangersSessions else { return false }
        self.log(
            Notice(
                .warning, "too many sessions with peers that nobody trusts; a person has to accept the next",
                ["peer": record.id, "name": record.name, "limit": EarshotLimits.strangersSessions]))
        return true
    }

    private func isBeingAccepted(_ record: PeerRecord) -> Bool {
        guard let pending = self.invitations.pending(with: record.id, .incoming) else { return false }
        return record.session.isAcceptanceDue || self.invitations[pending]?.isDeciding == true
    }

    // MARK: By the other side

    /// An invitation of this side's was accepted: messages may come in the session at once, and the invitation's end is published once it is on
    /// disk here too.
    mutating func invitationAccepted(_ id: InvitationID, session sessionID: SessionID) {
        guard let pending = self.invitations[id] else { return }
        let peer = pending.invitation.peerID
        // It was accepted before, and its session may have ended before it was on disk.
        guard !pending.isDeciding else { return self.disownSession(sessionID, of: peer) }
        guard let record = self.records[peer] else { return }
        guard record.sessionID == nil, record.session.agreement == nil else {
            // Another one begins, or has begun, and this invitation ends with it.
            self.disownSession(sessionID, of: peer)
            if let session = record.sessionID { self.resolveInvitation(id, .accepted, session: session) }
            return
        }
        guard !self.records.values.contains(where: { $0.sessionID == sessionID }), self.groups[GroupID(session: sessionID)] == nil else {
            self.log(Notice(.warning, "a peer has named another peer's session as its own", ["peer": peer]))
            self.send(.sessionEnd(sessionID), on: record.connection)
            let words = "\(record.name) has answered with a session that is another peer's"
            self.resolveInvitation(id, .failed, EarshotError(.protocolViolation, words))
            return
        }
        let wasDecided = record.standing.stored?.isDecided == true
        var stored = self.storedPeer(record)
        // A person here has asked for it.
        stored.isDecided = true
        self.invitations.setDeciding(id, true)
        self.records[peer]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(peer, .keep) }
        self.takeUp(StoredSession(id: sessionID, members: [self.id, peer], createdAt: self.now.wall), with: peer)
        self.decide(.keep(peer, andSession: true, .joined(id, sessionID, wasDecided: wasDecided)))
    }

    /// The session that a peer has accepted is on disk, or could not be put there.
    mutating func joined(_ id: InvitationID, _ session: SessionID, with peer: PeerID, wasDecided: Bool, _ error: EarshotError?) {
        self.invitations.setDeciding(id, false)
        let isStanding = self.records[peer]?.sessionID == session
        guard let error else {
            guard isStanding else {
                self.resolveInvitation(id, .failed, EarshotError(.notConnected, "the session has ended already"))
                return
            }
            self.resolveInvitation(id, .accepted, session: session)
            return
        }
        // An invitation of the peer's that a person has accepted meanwhile has put the session on disk, and was told as accepted.
        if isStanding, self.invitations[id]?.invitation.state == .pending {
            if !wasDecided { self.records[peer]?.standing.undecide() }
            self.endSession(with: peer, tellPeer: true)
            self.keepPeer(peer, andSession: true)
        }
        self.resolveInvitation(id, .failed, error)
    }
}

extension StoredPeer {
    /// What accepting its invitation says of a peer.
    fileprivate mutating func note(_ agreement: Agreement) {
        if agreement.isDecided { self.isDecided = true }
        if agreement.isAlways { self.trustForGood() }
    }
}
