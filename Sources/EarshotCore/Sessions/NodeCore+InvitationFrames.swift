import EarshotWire
import OrderedCollections

/// What peers say of invitations: the settings decide first, and only what waits for a person here is counted.
extension NodeCore {
    /// Why a stranger's invitation ends when others need its place.
    static var tooMany: EarshotError { EarshotError(.busy, "too many strangers wait for an answer, and another one has its place") }

    mutating func invitationCame(_ invite: Invite, from id: PeerID, on link: LinkID) {
        guard let record = self.records[id] else { return }
        if let known = self.invitations[invite.id] {
            guard known.hasLapsed, known.invitation.peerID == id else { return self.invitationCameAgain(known, from: id, on: link) }
            // Its inviter is back; no person has decided about it.
        }
        if let session = record.sessionID {
            guard self.settings.sessionsEndWithPrograms else {
                return self.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(session))), on: link)
            }
            // The program that held the session has ended, and another one asks.
            self.endSession(with: id, tellPeer: true)
            self.keepPeer(id, andSession: true)
        }
        if let own = self.invitations.pending(with: id, .outgoing).flatMap({ self.invitations[$0] }) {
            // Both have invited each other: the invitation of the lower peer id counts. Where that is this side's, and it was sent, the
            // peer will answer it, and its own is passed over; one that it has answered is over for it.
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

    /// A peer asks anew. A connection has one of its of a kind at a time: one of an earlier connection it knows nothing of any more, or has taken
    /// back meanwhile.
    mutating func cancelFormer(_ former: InvitationID?, on link: LinkID) {
        guard let former, let entry = self.invitations[former], entry.cameOn != link, !entry.isDeciding else { return }
        self.resolveInvitation(former, .cancelled, EarshotError(.notConnected, "it has gone, and has asked anew"))
    }

    /// Whether a peer has not invited too often lately. Trusted peers, and one that a person here has invited, may as often as they like.
    mutating func mayInvite(_ record: PeerRecord) -> Bool {
        if record.trust == .trusted || self.isInviting(record.id) { return true }
        let origin = record.link.current?.facts.origin
        return self.strangers.invitations.rate.admit(record.id, from: origin, at: self.now.monotonic)
    }

    /// Whether the invitation of a peer may wait for a person: trusted peers' always; a stranger may need another stranger's place.
    mutating func hasRoom(forInvitationOf record: PeerRecord) -> Bool {
        guard record.trust != .trusted, !self.strangers.invitations.places.contains(record.id) else { return true }
        switch self.strangers.invitations.places.admit(record.id, from: record.link.current?.facts.origin ?? []) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, let hadGone):
            guard let displaced = self.invitations.allPending(with: other, .incoming).first else { return true }
            if hadGone {
                self.lapse(displaced, "it has gone, and another stranger has its place")
            } else {
                self.resolveInvitation(displaced, .failed, Self.tooMany, answering: .busy)
            }
            return true
        }
    }

    // MARK: Inviters that go

    /// The connection of a peer is gone: its invitation waits a while for it to come back.
    mutating func inviterLeft(_ id: PeerID) {
        self.strangers.invitations.places.left(id)
        for pending in self.invitations.allPending(with: id, .incoming) { self.awaitInviter(pending) }
    }

    /// The inviter asks again on the next connection where it still wants an answer: one that has started anew knows nothing of it.
    mutating func awaitInviter(_ id: InvitationID) {
        self.invitations.setInviterAbsent(id, true)
        self.set(.inviterAbsent(id), after: EarshotLimits.absentInviterTime)
    }

    mutating func inviterReturned(_ id: PeerID) {
        self.strangers.invitations.places.returned(id)
        for pending in self.invitations.allPending(with: id, .incoming) {
            // One that was accepted, and whose seat was not vouched for: an inviter that still wants that asks again.
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

    /// No peer waits for an answer to it any more, as far as can be seen from here.
    private mutating func lapse(_ id: InvitationID, _ why: String) {
        let error = EarshotError(.notConnected, why)
        if let group = self.invitations[id]?.invitation.group?.id, self.groups[group]?.invitation == id {
            self.stopJoining(group, id, .cancelled, error)
        }
        self.resolveInvitation(id, .cancelled, error)
        self.invitations.lapse(id)
    }

    // MARK: Answers

    /// The same invitation on a new connection: the inviter has not heard what became of it.
    private mutating func invitationCameAgain(_ known: InvitationTable.Entry, from id: PeerID, on link: LinkID) {
        let invitation = known.invitation
        // The id is that of another peer's invitation, or of one of this side's: passed over.
        guard invitation.direction == .incoming, invitation.peerID == id else { return }
        var decision = InviteAnswer.Decision.declined
        switch invitation.state {
        case .pending: return self.invitations.came(invitation.id, on: link)
        case .accepted: if let session = invitation.sessionID, self.records[id]?.sessionID == session { decision = .accepted(session) }
        case .declined, .timedOut, .cancelled, .failed: break
        }
        self.send(.inviteAnswer(InviteAnswer(id: invitation.id, decision: decision)), on: link)
    }

    /// A peer's pending invitation in that direction, where it is that one.
    private func pending(_ id: InvitationID, of peer: PeerID, _ direction: Direction) -> Invitation? {
        guard let invitation = self.invitations[id]?.invitation, invitation.peerID == peer, invitation.direction == direction,
            invitation.state == .pending
        else { return nil }
        return invitation
    }

    mutating func answerCame(_ answer: InviteAnswer, from id: PeerID) {
        guard let invitation = self.pending(answer.id, of: id, .outgoing), self.invitations[answer.id]?.isDeciding == false else {
            // What became of it was decided without this answer; the peer does not hold a session alone.
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
            // One of this side's may have waited for that.
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

    /// Ends the session that accepting a withdrawn invitation has begun: the inviter does not hold it.
    ///
    /// A connection hands a withdrawal on only where it has written no answer. The withdrawal was read while the acceptance was on its way to
    /// the disk, and the connection has dropped the acceptance since.
    private mutating func undoAcceptance(of id: InvitationID, from peer: PeerID) {
        guard let invitation = self.invitations[id]?.invitation, invitation.direction == .incoming, invitation.group == nil,
            invitation.state == .accepted, let session = invitation.sessionID, self.records[peer]?.sessionID == session
        else { return }
        self.endSession(with: peer, tellPeer: true)
        self.keepPeer(peer, andSession: true)
    }
}
