import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// What peers say of invitations: the settings decide first, and only what waits for a person here is counted (design section 4).
extension Node {
    /// Why a stranger's invitation ends when others need its place.
    static var tooMany: EarshotError { EarshotError(.busy, "too many strangers wait for an answer, and another one has its place") }

    func received(_ invite: Invite, from id: PeerID) {
        guard let record = self.records[id], let connection = record.connection else { return }
        if let known = self.invitations[invite.id] {
            guard known.hasLapsed, known.invitation.peerID == id else { return self.receivedAgain(known, from: id, on: connection) }
            // Its inviter is back; nobody has decided about it.
        }
        if let session = record.session {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(session.id)))])
            return
        }
        if let own = self.pendingInvitation(with: id, .outgoing) {
            // Crossing: of the two the lower id's stands. Where that is ours and it is out, the peer will answer it.
            let isSent = self.invitations[own]?.sentOn == connection.id
            guard !(isSent && self.id < id) else { return }
        }
        let isBusy = self.pendingInvitation(with: id, .incoming) != nil || !self.mayInvite(record, on: connection)
        guard !isBusy else {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy))])
            return
        }
        self.expireTrust(id)
        guard let record = self.records[id] else { return }
        var outcome = self.policy(of: record).invitation().outcome
        switch outcome {
        case .hide: return self.declineLater(invite.id, on: connection)
        case .accept: if self.isFull(forStranger: record) { outcome = .ask }
        case .ask, .reject: break
        }
        guard outcome != .ask || self.hasRoom(forInvitationOf: record) else {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy))])
            return
        }
        let timeout = Duration.milliseconds(Int64(invite.timeoutMilliseconds))
        self.invitations.removeValue(forKey: invite.id)
        let invitation = self.remember(self.makeInvitation(.incoming, id: invite.id, peer: id, context: invite.context, timeout: timeout))
        self.invitations[invite.id]?.expiry = self.schedule(.invitation(invite.id), after: timeout)
        self.tell(.invitationReceived(invitation))
        switch outcome {
        case .ask, .hide: break
        case .reject: self.resolveInvitation(invite.id, .declined, answering: .declined)
        case .accept: self.acceptByPolicy(id)
        }
    }

    /// Whether a peer has not invited too often lately. Trusted peers, and one that somebody here has invited, may as often as they like.
    private func mayInvite(_ record: PeerRecord, on connection: Connection) -> Bool {
        record.trust == .trusted || self.isInviting(record.id)
            || self.strangers.invitations.rate.admit(record.id, from: connection.origin, at: self.transport.timers.now)
    }

    /// Whether the invitation of a peer may wait for a person: trusted peers' always; a stranger may need another stranger's place.
    func hasRoom(forInvitationOf record: PeerRecord) -> Bool {
        guard record.trust != .trusted, !self.strangers.invitations.places.contains(record.id) else { return true }
        switch self.strangers.invitations.places.admit(record.id, from: record.connection?.origin ?? []) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, let hadGone):
            guard let displaced = self.pendingInvitation(with: other, .incoming) else { return true }
            if hadGone {
                self.lapse(displaced, "it has gone, and another stranger has its place")
            } else {
                self.resolveInvitation(displaced, .failed, error: Self.tooMany, answering: .busy)
            }
            return true
        }
    }

    /// As a blocked peer is answered: it hears what a person's rejection sounds like, and nobody here hears of it.
    func declineLater(_ id: InvitationID, on connection: Connection) {
        let delay = Int64.random(in: EarshotLimits.blockedAnswerMilliseconds)
        self.schedule(.blockedAnswer(id, connection), after: .milliseconds(delay), charge: EarshotLimits.blockedAnswerCharge)
    }

    /// The same of a blocked peer, which hears what others do also where it invites too often.
    func receivedFromBlocked(_ invite: Invite, on connection: Connection) {
        guard self.strangers.invitations.rate.admit(connection.peer.id, from: connection.origin, at: self.transport.timers.now) else {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy))])
            return
        }
        self.declineLater(invite.id, on: connection)
    }

    // MARK: Inviters that go

    /// The connection of a peer is gone: its invitation waits a while for it to come back.
    func inviterLeft(_ id: PeerID) {
        self.strangers.invitations.places.left(id)
        guard let pending = self.pendingInvitation(with: id, .incoming) else { return }
        self.invitations[pending]?.absence?.cancel()
        self.invitations[pending]?.absence = self.schedule(.inviterAbsent(pending), after: EarshotLimits.absentInviterTime)
    }

    func inviterReturned(_ id: PeerID) {
        self.strangers.invitations.places.returned(id)
        guard let pending = self.pendingInvitation(with: id, .incoming) else { return }
        self.invitations[pending]?.absence?.cancel()
        self.invitations[pending]?.absence = nil
    }

    func inviterIsAbsent(_ id: InvitationID) {
        // It may have come back at this very moment.
        guard self.invitations[id]?.absence != nil else { return }
        self.lapse(id, "it has gone, and was not back within \(EarshotLimits.absentInviterTime.components.seconds) s")
    }

    /// Nobody waits for an answer to it any more, as far as can be seen from here.
    private func lapse(_ id: InvitationID, _ why: String) {
        self.resolveInvitation(id, .cancelled, error: EarshotError(.notConnected, why))
        self.invitations[id]?.hasLapsed = true
    }

    // MARK: Answers

    /// The same invitation on a new connection: the inviter has not heard what became of it.
    private func receivedAgain(_ known: InvitationRecord, from id: PeerID, on connection: Connection) {
        guard known.invitation.direction == .incoming, known.invitation.peerID == id else {
            // Somebody else's: what it asks for is nothing that can be answered.
            return
        }
        switch known.invitation.state {
        case .pending: break
        case .accepted:
            if let session = known.invitation.sessionID, self.records[id]?.session?.id == session {
                connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .accepted(session)))])
            } else {
                connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .declined))])
            }
        case .declined, .timedOut, .cancelled, .failed:
            connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .declined))])
        }
    }

    func received(_ answer: InviteAnswer, from id: PeerID) {
        guard let record = self.invitations[answer.id], record.invitation.peerID == id, record.invitation.direction == .outgoing,
            record.invitation.state == .pending
        else { return }
        switch answer.decision {
        case .accepted(let session): self.invitationAccepted(answer.id, session: session)
        case .declined: self.resolveInvitation(answer.id, .declined)
        case .busy:
            self.resolveInvitation(
                answer.id, .failed,
                error: EarshotError(.busy, "\(record.invitation.peerName) has too many invitations waiting; try again later"))
        }
    }

    func received(_ withdraw: InviteWithdraw, from id: PeerID) {
        guard let record = self.invitations[withdraw.id], record.invitation.peerID == id, record.invitation.direction == .incoming,
            record.invitation.state == .pending
        else { return }
        switch withdraw.reason {
        case .withdrawn: self.resolveInvitation(withdraw.id, .cancelled)
        case .timedOut: self.resolveInvitation(withdraw.id, .timedOut)
        }
    }
}
