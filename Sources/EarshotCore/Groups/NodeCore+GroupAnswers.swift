import EarshotWire
import OrderedCollections

/// Answers of peers that were invited to a group, and the steps that let them in.
extension NodeCore {
    mutating func groupAnswerCame(_ answer: GroupInviteAnswer, from id: PeerID, on link: LinkID) {
        guard let entry = self.invitations[answer.id], entry.invitation.peerID == id, entry.invitation.direction == .outgoing,
            let group = entry.invitation.group?.id
        else { return }
        self.invitations.answered(answer.id, on: link)
        guard entry.invitation.state == .pending else { return self.lateGroupAnswerCame(answer, to: group, from: id, on: link) }
        guard !entry.isDeciding else { return }
        switch answer.decision {
        case .declined: self.resolveInvitation(answer.id, .declined)
        case .busy:
            let words =
                "\(entry.invitation.peerName) takes no invitation now: this machine has asked too often, or too many wait there, "
                + "or it is in too many groups; ask again in a minute"
            self.resolveInvitation(answer.id, .failed, EarshotError(.busy, words))
        case .accepted(let seat):
            guard let held = self.groups[group], let own = held.records.seat(of: self.id) else { return }
            guard seat.peer == id else { return self.refuseSeat(answer.id, "the peer has accepted with another key than its own") }
            guard seat.voucher == self.id, seat.voucherNumber == own.number else { return self.awaitProof(answer.id, of: group) }
            guard let input = try? seat.signedBytes(as: .peer, in: group) else {
                return self.refuseSeat(answer.id, "the peer has accepted with a seat that cannot be signed")
            }
            guard (entry.seatNumber...EarshotLimits.groupSeatNumber).contains(seat.number) else {
                return self.refuseSeat(answer.id, "the peer has taken the seat \(seat.number), and was given \(entry.seatNumber)")
            }
            let check = ProofCheck(scheme: seat.scheme, publicKey: seat.publicKey, input: input, signature: seat.signature)
            self.invitations.setDeciding(answer.id, true)
            self.emit(.check(self.groups.signatures.beginChecking(.applicantSeat(seat, answer.id)), [[check]]))
        }
    }

    /// Waits for the records of a peer that answered with a seat for which this machine has not vouched. The peer is already in the group,
    /// or is its creator and rejoins. The records that prove this follow its answer.
    private mutating func awaitProof(_ id: InvitationID, of group: GroupID) {
        self.resolveInvitations(ofMembersOf: group)
        guard let entry = self.invitations[id], entry.invitation.state == .pending else { return }
        let left = entry.deadline.map { $0 - self.now.monotonic } ?? EarshotLimits.groupProofTime
        self.set(.invitation(id), after: min(left, EarshotLimits.groupProofTime))
    }

    /// Sends all records to a peer that was let in, so that it need not ask for them.
    mutating func welcome(_ invitation: InvitationID, to group: GroupID) {
        guard let peer = self.invitations[invitation]?.invitation.peerID, let held = self.groups[group],
            held.records.membership.contains(peer), let current = self.records[peer]?.link.current, self.mayCarry(held, current.facts),
            self.records[peer]?.groups.show(group) == true
        else { return }
        self.send(held.records.all, of: group, on: current.id)
    }

    /// Fails an invitation whose seat is not acceptable. The peer hears at once that nobody vouches for the seat.
    mutating func refuseSeat(_ id: InvitationID, _ words: String) {
        self.resolveInvitation(id, .failed, EarshotError(.protocolViolation, words), withdrawing: .withdrawn)
    }

    /// Handles the answer to an invitation that ended here because its peer was found to be a member already.
    private mutating func lateGroupAnswerCame(_ answer: GroupInviteAnswer, to group: GroupID, from id: PeerID, on link: LinkID) {
        // The peer was a member by an older seat, which it may have left. Without the withdrawal, it would wait until the invitation
        // expires.
        if case .accepted(let seat) = answer.decision, self.groups[group]?.records.seat(of: id)?.number ?? 0 < seat.number {
            self.send(.group(.inviteWithdraw(InviteWithdraw(id: answer.id, reason: .withdrawn))), on: link)
        }
        self.sendGroupInvitation(to: id)
    }

    /// Countersigns the seat of a peer, after the check has shown that the peer signed it.
    mutating func applicantChecked(_ seat: GroupSeat, _ id: InvitationID) {
        guard let entry = self.invitations[id], entry.invitation.state == .pending, let group = entry.invitation.group?.id,
            let held = self.groups[group], held.isJoined
        else { return self.invitations.setDeciding(id, false) }
        var seat = seat
        seat.warrant = GroupSeat.Warrant(held.records.charter.creator == self.id ? .creator : .voucher)
        guard let input = try? seat.signedBytes(as: seat.warrant.role, in: group) else { return self.invitations.setDeciding(id, false) }
        self.emit(.sign(self.groups.signatures.beginSigning(.warrant(seat, id)), [input]))
    }
}
