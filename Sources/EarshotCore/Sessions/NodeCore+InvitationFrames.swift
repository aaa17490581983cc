import EarshotWire
import OrderedCollections

/// Peers' frames about invitations. The settings decide first, and only invitations that await a user's decision are counted.
extension NodeCore {
    /// The error for a stranger's invitation that is evicted for another's.
    static var tooMany: EarshotError { EarshotError(.busy, "too many untrusted peers wait for an answer; another has its place") }

    mutating func invitationCame(_ invite: Invite, from id: PeerID, on link: LinkID) {
        guard let record = self.records[id] else { return }
        if let known = self.invitations[invite.id] {
            guard known.hasLapsed, known.invitation.peerID == id else { return self.invitationCameAgain(known, from: id, on: link) }
            // The inviter has returned, and no user has decided about the invitation.
        }
        if let session = record.sessionID {
            guard self.settings.sessionsEndWithPrograms else {
                return self.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(session))), on: link)
            }
            // The program that held the session has ended, and another one invites.
            self.endSession(with: id, tellPeer: true)
            self.keepPeer(id, andSession: true)
        }
        if let own = self.invitations.pending(with: id, .outgoing).flatMap({ self.invitations[$0] }) {
            // Both peers have invited each other: the invitation of the lower peer id counts. If that is this side's and was sent, the peer
            // will answer it, so the peer's own invitation is ignored. An invitation that the peer has answered is over for it.
            guard !(own.sentOn == link && !own.isDeciding && self.id < id) else { return }
        }
        self.cancelFormer(self.invitations.pending(with: id, .incoming), on: link)
        let isBusy = Direction.incoming.isPending(with: id, in: self.invitations) || !self.mayInvite(record)
        guard !isBusy else { return self.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy)), on: link) }
        self.expireTrust(id)
        guard let record = self.records[id] else { return }
        let policy = self.policy(of: record).invitation()
        var outcome = policy.outcome
        switch outcome {
        case .hide: return self.declineLater(invite.id, on: link)
        case .accept: if self.isFull(forStranger: record) { outcome = .ask }
        case .ask, .reject: break
        }
        guard outcome != .ask || self.hasRoom(forInvitationOf: record) else {
            return self.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy)), on: link)
        }
        let timeout = Duration.milliseconds(Int64(invite.timeoutMilliseconds))
        let invitation = self.makeInvitation(.incoming, id: invite.id, peer: id, context: invite.context, timeout: timeout)
        self.invitations.add(invitation)
        self.invitations.came(invite.id, on: link)
        self.set(.invitation(invite.id), after: timeout)
        self.publish(.invitationReceived(invitation))
        self.log(
            Notice(
                .info, "an invitation came in",
                ["peer": id, "name": record.name, "invitation": invite.id, "decision": outcome.shown.rawValue, "rule": policy.rule]))
        switch outcome {
        case .ask, .hide: break
        case .reject: self.resolveInvitation(invite.id, .declined, answering: .declined)
        case .accept: self.acceptBySettings(id)
        }
    }

    /// Ends an earlier invitation of a peer that invites again. A connection carries one invitation of a kind at a time: the peer has
    /// withdrawn the former one, or no longer knows of it since it came on an earlier connection.
    mutating func cancelFormer(_ former: InvitationID?, on link: LinkID) {
        guard let former, let entry = self.invitations[former], entry.cameOn != link, !entry.isDeciding else { return }
        self.resolveInvitation(former, .cancelled, EarshotError(.notConnected, "it has gone, and has asked anew"))
    }

    /// Whether a peer stays within the rate of invitations. Trusted peers, and those that a user here has invited, have no limit.
    mutating func mayInvite(_ record: PeerRecord) -> Bool {
        if record.trust == .trusted || self.isInviting(record.id) { return true }
        let origin = record.link.current?.facts.origin
        return self.strangers.invitations.rate.admit(record.id, from: origin, at: self.now.monotonic)
    }

    /// Whether a peer's invitation may await a user's decision. A trusted peer's always may; a stranger's may evict another stranger's.
    mutating func hasRoom(forInvitationOf record: PeerRecord) -> Bool {
        guard record.trust != .trusted, !self.strangers.invitations.places.contains(record.id) else { return true }
        switch self.strangers.invitations.places.admit(record.id, from: record.link.current?.facts.origin ?? []) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, let hadGone):
            self.displaceInvitation(at: other, hadGone: hadGone)
            return true
        }
    }

    /// Ends the invitation or the offer of a stranger that was evicted from its place.
    mutating func displaceInvitation(at place: PeerID, hadGone: Bool) {
        if let (id, _) = self.devices.offers.elements.first(where: { $0.value.place == place }) {
            self.resolveInvitation(id, .failed, Self.tooMany)
            return
        }
        guard let displaced = self.invitations.allPending(with: place, .incoming).first else { return }
        if hadGone {
            self.lapse(displaced, "it has gone, and another untrusted peer has its place")
        } else {
            self.resolveInvitation(displaced, .failed, Self.tooMany, answering: .busy)
        }
    }

    // MARK: Absent inviters

    /// Starts the wait for an inviter whose connection is lost.
    mutating func inviterLeft(_ id: PeerID) {
        self.strangers.invitations.places.left(id)
        for pending in self.invitations.allPending(with: id, .incoming) { self.awaitInviter(pending) }
    }

    /// Waits for an inviter to return. If it still wants an answer, it invites again on the next connection; an inviter that has restarted
    /// knows nothing of the invitation.
    mutating func awaitInviter(_ id: InvitationID) {
        self.invitations.setInviterAbsent(id, true)
        self.set(.inviterAbsent(id), after: EarshotLimits.absentInviterTime)
    }

    mutating func inviterReturned(_ id: PeerID) {
        self.strangers.invitations.places.returned(id)
        for pending in self.invitations.allPending(with: id, .incoming) {
            // The invitation was accepted, and its seat was not vouched for. An inviter that still wants that invites again.
            if let group = self.invitations[pending]?.invitation.group?.id, self.groups[group]?.invitation == pending { continue }
            self.inviterIsThere(pending)
        }
    }

    mutating func inviterIsThere(_ id: InvitationID) {
        self.invitations.setInviterAbsent(id, false)
        self.deadlines.cancel(.inviterAbsent(id))
    }

    mutating func inviterStaysAway(_ id: InvitationID) {
        guard self.invitations[id]?.isInviterAbsent == true else { return }
        let time = "within \(EarshotLimits.absentInviterTime.components.seconds) s"
        let isBack = self.invitations[id].flatMap { self.records[$0.invitation.peerID]?.connection } != nil
        self.lapse(id, isBack ? "it has gone, and has not asked again \(time)" : "it has gone, and was not back \(time)")
    }

    /// Ends an invitation whose inviter no longer waits for an answer, as far as this side can tell.
    private mutating func lapse(_ id: InvitationID, _ why: String) {
        let error = EarshotError(.notConnected, why)
        if let group = self.invitations[id]?.invitation.group?.id, self.groups[group]?.invitation == id {
            self.stopJoining(group, id, .cancelled, error)
        }
        self.resolveInvitation(id, .cancelled, error)
        self.invitations.lapse(id)
    }

    // MARK: Answers

    /// Answers an invitation that is repeated on a new connection: the inviter has not received its outcome.
    private mutating func invitationCameAgain(_ known: InvitationTable.Entry, from id: PeerID, on link: LinkID) {
        let invitation = known.invitation
        // The id belongs to another peer's invitation, or to one of this side: ignored.
        guard invitation.direction == .incoming, invitation.peerID == id else { return }
        var decision = InviteAnswer.Decision.declined
        switch invitation.state {
        case .pending: return self.invitations.came(invitation.id, on: link)
        case .accepted: if let session = invitation.sessionID, self.records[id]?.sessionID == session { decision = .accepted(session) }
        case .declined, .timedOut, .cancelled, .failed: break
        }
        self.send(.inviteAnswer(InviteAnswer(id: invitation.id, decision: decision)), on: link)
    }

    /// Returns the invitation if it is pending, of that peer and of that direction.
    private func pending(_ id: InvitationID, of peer: PeerID, _ direction: Direction) -> Invitation? {
        guard let invitation = self.invitations[id]?.invitation, invitation.peerID == peer, invitation.direction == direction,
            invitation.state == .pending
        else { return nil }
        return invitation
    }

    mutating func answerCame(_ answer: InviteAnswer, from id: PeerID) {
        guard let invitation = self.pending(answer.id, of: id, .outgoing), self.invitations[answer.id]?.isDeciding == false else {
            // The outcome was decided without this answer, so the peer must not keep a session that this side does not hold.
            if case .accepted(let session) = answer.decision { self.disownSession(session, of: id) }
            return
        }
        switch answer.decision {
        case .accepted(let session): self.invitationAccepted(answer.id, session: session)
        case .declined: self.resolveInvitation(answer.id, .declined)
        case .busy:
            let words =
                "\(invitation.peerName) takes no invitation now: this machine has asked too often, or too many wait there; "
                + "ask again in a minute"
            self.resolveInvitation(answer.id, .failed, EarshotError(.busy, words))
        }
    }

    mutating func withdrawalCame(_ withdraw: InviteWithdraw, from id: PeerID) {
        if let hold = self.groups.signatures.withdraw(withdraw.id, of: id) { return self.release(hold) }
        guard self.invitations[withdraw.id]?.invitation.peerID == id else { return }
        if self.invitations[withdraw.id]?.invitation.group == nil { self.invitations.withdrawn(withdraw.id) }
        guard self.pending(withdraw.id, of: id, .incoming) != nil else {
            self.undoAcceptance(of: withdraw.id, from: id)
            // An invitation of this side may have waited for that.
            return self.sendInvitation(to: id)
        }
        if let group = self.invitations[withdraw.id]?.invitation.group?.id, self.groups[group]?.invitation == withdraw.id {
            let words = "the inviter has taken its invitation back"
            return self.stopJoining(group, withdraw.id, .cancelled, EarshotError(.cancelled, words))
        }
        switch withdraw.reason {
        case .withdrawn: self.resolveInvitation(withdraw.id, .cancelled)
        case .timedOut: self.resolveInvitation(withdraw.id, .timedOut)
        }
    }

    /// Ends the session that began with accepting a withdrawn invitation: the inviter does not hold it.
    ///
    /// A connection passes a withdrawal on only if it has written no answer. The withdrawal arrived while the acceptance was being written
    /// to disk, and the connection has dropped the acceptance since.
    private mutating func undoAcceptance(of id: InvitationID, from peer: PeerID) {
        guard let invitation = self.invitations[id]?.invitation, invitation.direction == .incoming, invitation.group == nil,
            invitation.state == .accepted, let session = invitation.sessionID, self.records[peer]?.sessionID == session
        else { return }
        self.endSession(with: peer, tellPeer: true)
        self.keepPeer(peer, andSession: true)
    }
}
