import EarshotWire
import OrderedCollections

/// Acceptance of invitations by either side, with which a session begins.
///
/// A peer has one session, in memory and on disk. An acceptance is computed when it reaches the head of the queue, from the state at that
/// time, and is applied when its commit is reported. While it is being written (``SessionState/agreement``), no other session with that
/// peer begins.
extension NodeCore {
    /// Returns the error for an acceptance whose invitation has ended meanwhile.
    func isOver(_ invitation: Invitation) -> EarshotError {
        EarshotError(.conflict, "the invitation of \(invitation.peerName) was over meanwhile", remedy: .listInvitations)
    }

    /// Whether an automatic acceptance would be made now too: trust may expire while the disk is busy.
    func isAccepting(_ peer: PeerID, _ acceptor: Decision.Acceptor) -> Bool {
        guard let record = self.records[peer], record.sessionID == nil else { return true }
        return switch acceptor {
        case .person: true
        case .sender: record.trust == .trusted
        case .settings: self.policy(of: record).invitation().outcome == .accept
        }
    }

    /// Returns the error for an acceptance that is on disk, and is undone.
    func whyUndone(_ invitation: Invitation) -> EarshotError {
        guard self.invitations[invitation.id]?.invitation.state == .pending else { return self.isOver(invitation) }
        return EarshotError(.conflict, "\(invitation.peerName) is no longer trusted, and a user has to answer its invitation")
    }

    /// Returns the writes that accept an invitation now. The peer's agreement is set until they are on disk, or have failed.
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
        // Also counts as decided by a user if the settings accept it while a user's own invitation to that peer is pending.
        let agreement = Agreement(session: session, isDecided: isPerson || self.isInviting(peer), isAlways: always)
        self.records[peer]?.session.begin(agreement)
        var stored = self.storedPeer(record)
        stored.note(agreement)
        // One transaction: storing a session without its peer's trust would store half of the decision.
        let rest: [StoreOperation] = record.session.isEndUnwritten ? [.removeSession(with: peer)] : []
        return rest + [.putPeer(stored), .putSession(agreement.session)]
    }

    /// Applies an agreement that is on disk; `nil` if the invitation has ended meanwhile.
    mutating func adopt(_ agreement: Agreement, acceptedBy id: InvitationID, with peer: PeerID) -> Invitation? {
        guard let record = self.records[peer], let entry = self.invitations[id], entry.invitation.state == .pending else { return nil }
        // Facts that were noted about the peer while the disk was busy are kept.
        var stored = self.storedPeer(record)
        stored.note(agreement)
        self.records[peer]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(peer, .keep) }
        let session = agreement.session
        let decided = self.resolveInvitation(id, .accepted, session: session.id, answering: .accepted(session.id))
        // An invitation that came on an earlier connection gets no answer on this one. The session is named instead, and an inviter that
        // has restarted meanwhile answers that it has none.
        let isToBeNamed = entry.cameOn != record.connection
        if record.sessionID != session.id || !record.isAttached {
            self.takeUp(session, with: peer, isToBeNamed: isToBeNamed)
        } else if isToBeNamed {
            self.nameSession(to: peer)
        }
        self.ensureConnection(peer, now: true)
        return decided
    }

    // MARK: By sending

    /// Accepts the pending invitation of a peer to which something is sent.
    mutating func acceptForSending(_ id: InvitationID, of peer: PeerID) {
        guard let record = self.records[peer] else { return }
        self.records[peer]?.session.awaitAcceptance()
        // An acceptance may already be under way.
        guard self.invitations[id]?.isDeciding == false, !record.session.isAcceptanceDue else { return }
        self.decide(.accept(id, of: peer, always: false, .sender))
        self.invitations.setDeciding(id, true)
    }

    /// Checks that the peer is trusted: sending accepts only a trusted peer's invitation, and the trust may have ended while the acceptance
    /// waited in the queue.
    func checkSender(to peer: PeerID) throws(EarshotError) {
        guard let record = self.records[peer], record.trust != .trusted else { return }
        throw EarshotError(.notConnected, "\(record.name) is not trusted any more")
    }

    /// Handles an acceptance for sending that failed: what is being sent fails. If a trusted peer has withdrawn its invitation, it is
    /// invited instead.
    mutating func acceptanceFailed(with peer: PeerID, _ error: EarshotError) {
        // Another acceptance has yet to be decided: wait for it.
        if let pending = self.invitations.pending(with: peer, .incoming), self.invitations[pending]?.isDeciding == true { return }
        guard self.records[peer]?.session.endAwaiting() == true, let record = self.records[peer], record.sessionID == nil,
            !self.isInviting(peer)
        else { return }
        guard record.trust != .trusted || self.invitations.pending(with: peer, .incoming) != nil else {
            return self.inviteUnlessUnderWay(peer)
        }
        // The caller asked to send, so the error names the acceptance as the reason.
        let words = "the invitation of \(record.name) could not be accepted: \(error.message)"
        self.spread(.ended(.invitation, EarshotError(.notConnected, words, underlying: error)), of: peer)
    }

    // MARK: By settings

    /// Queues the acceptance of the peer's invitation by the settings. At most one such decision per peer is queued, however often it
    /// invites and withdraws.
    mutating func acceptBySettings(_ peer: PeerID) {
        guard self.records[peer]?.session.isAcceptanceDue == false else { return }
        self.records[peer]?.session.makeAcceptanceDue()
        self.decide(.acceptBySettings(peer))
    }

    /// Applies the settings to the pending invitation of a peer that a user has begun to trust. If they reject it, it still waits for the
    /// user, who has been asked already.
    mutating func acceptWaiting(of peer: PeerID) {
        guard self.undecidedInvitation(of: peer) != nil, let record = self.records[peer],
            self.policy(of: record).invitation().outcome == .accept
        else { return }
        self.acceptBySettings(peer)
    }

    /// Computes the acceptance by the settings, which has reached the head of the queue.
    mutating func agreeBySettings(with peer: PeerID) throws(EarshotError) -> (Invitation, [StoreOperation]) {
        self.records[peer]?.session.acceptanceHasTurn()
        guard let invitation = self.undecidedInvitation(of: peer), let record = self.records[peer],
            self.policy(of: record).invitation().outcome == .accept
        else { throw EarshotError(.conflict, "the settings accept nothing of it any more") }
        let operations = try self.agree(to: invitation, isPerson: false, always: false)
        self.invitations.setDeciding(invitation.id, true)
        return (invitation, operations)
    }

    /// Returns the peer's pending invitation, unless a user is answering it.
    private func undecidedInvitation(of peer: PeerID) -> Invitation? {
        guard let id = self.invitations.pending(with: peer, .incoming), let entry = self.invitations[id], !entry.isDeciding else {
            return nil
        }
        return entry.invitation
    }

    /// Decides anew, by the present settings, about an invitation that still waits because its acceptance by the settings failed.
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

    /// Whether the settings may not admit one more peer that no user trusts.
    mutating func isFull(forStranger record: PeerRecord) -> Bool {
        guard record.trust != .trusted else { return false }
        // Acceptances that are being written count too: many may come at once.
        let strangers = self.records.values.count { $0.trust != .trusted && ($0.sessionID != nil || self.isBeingAccepted($0)) }
        guard strangers >= EarshotLimits.strangersSessions else { return false }
        self.log(
            Notice(
                .warning, "too many sessions with untrusted peers; a user has to accept the next one",
                ["peer": record.id, "name": record.name, "limit": EarshotLimits.strangersSessions]))
        return true
    }

    private func isBeingAccepted(_ record: PeerRecord) -> Bool {
        guard let pending = self.invitations.pending(with: record.id, .incoming) else { return false }
        return record.session.isAcceptanceDue || self.invitations[pending]?.isDeciding == true
    }

    // MARK: By the peer

    /// Handles the peer's acceptance of an invitation. Messages may arrive in the session at once. The end of the invitation is published
    /// once the session is on disk here too.
    mutating func invitationAccepted(_ id: InvitationID, session sessionID: SessionID) {
        guard let pending = self.invitations[id] else { return }
        let peer = pending.invitation.peerID
        // The peer accepted it before, and that session may have ended before it was on disk.
        guard !pending.isDeciding else { return self.disownSession(sessionID, of: peer) }
        guard let record = self.records[peer] else { return }
        guard record.sessionID == nil, record.session.agreement == nil else {
            // Another session begins, or has begun, and this invitation ends with it.
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
        // A user here has asked for the session.
        stored.isDecided = true
        self.invitations.setDeciding(id, true)
        self.records[peer]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(peer, .keep) }
        self.takeUp(StoredSession(id: sessionID, members: [self.id, peer], createdAt: self.now.wall), with: peer)
        self.decide(.keep(peer, andSession: true, .joined(id, sessionID, wasDecided: wasDecided)))
    }

    /// Handles the write of a session that the peer has accepted, or its failure.
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
        // Meanwhile a user may have accepted an invitation of the peer, which has put the session on disk and was reported as accepted.
        if isStanding, self.invitations[id]?.invitation.state == .pending {
            if !wasDecided { self.records[peer]?.standing.undecide() }
            self.endSession(with: peer, tellPeer: true)
            self.keepPeer(peer, andSession: true)
        }
        self.resolveInvitation(id, .failed, error)
    }
}

extension StoredPeer {
    /// Notes the facts about a peer that accepting its invitation implies.
    fileprivate mutating func note(_ agreement: Agreement) {
        if agreement.isDecided { self.isDecided = true }
        if agreement.isAlways { self.trustForGood() }
    }
}
