import EarshotWire
import OrderedCollections

/// Inviting peers to a group, and joining a group.
///
/// The invitee takes a seat and signs it. If the inviter still waits, it signs the same seat and commits it. The inviter signs nothing
/// before that, so that a withdrawn invitation lets nobody in.
extension NodeCore {
    // MARK: Outgoing invitations

    mutating func invite(
        _ names: [String], to group: GroupID, context: [UInt8], timeout: Duration?, _ call: CallID
    ) throws(EarshotError) {
        guard let held = self.groups[group], held.isJoined else {
            throw EarshotError(.conflict, "this machine is not in the group yet; its inviter has not let it in")
        }
        guard !held.records.charter.isClosed || held.records.charter.creator == self.id else {
            throw EarshotError(.forbidden, "the group \(held.records.terms.name) is closed: only its creator lets others in")
        }
        guard context.count <= WireLimits.invitationContext else {
            throw EarshotError(
                .invalidParameter, "an invitation's context has at most \(WireLimits.invitationContext) bytes, not \(context.count)")
        }
        guard (1...EarshotLimits.recipients).contains(names.count) else {
            throw EarshotError(.invalidParameter, "there are 1 to \(EarshotLimits.recipients) peers to invite")
        }
        var peers: OrderedSet<PeerID> = []
        for name in names {
            let id = try self.resolvePeer(name)
            guard let record = self.records[id] else { throw .unseen(id) }
            guard record.trust != .blocked else { throw .blocked(record.name) }
            if let pending = self.invitations.pendingGroup(with: id, .outgoing), self.invitations[pending]?.invitation.group?.id != group {
                throw EarshotError(.conflict, "\(record.name) is invited to another group already; wait for its answer, or withdraw that")
            }
            // A seat that an ordinary member vouches for would not count.
            guard held.records.removals[id] == nil || held.records.charter.creator == self.id else {
                throw EarshotError(
                    .forbidden, "\(record.name) was taken out of the group \(held.records.terms.name): only its creator lets it in again")
            }
            guard held.records.membership.contains(id) || held.records.nextNumber(of: id) != nil else {
                throw EarshotError(.noSpace, "\(record.name) has had all seats in the group that one peer can have")
            }
            peers.append(id)
        }
        let new = Array(peers.filter { !held.records.membership.contains($0) })
        // The computation considers branches: a member that has let in many peers takes no places from others. Counting members would be
        // wrong.
        let room = new.isEmpty ? 0 : held.records.room(for: new, letInBy: self.id)
        guard new.count <= room else {
            throw EarshotError(.noSpace, "a group has at most \(EarshotLimits.groupMembers) members, and there is room for \(room) more")
        }
        let invitations = peers.map { self.invite($0, to: held, context: context, timeout: timeout) }
        self.answer(call, .invitations(invitations))
    }

    private mutating func invite(_ peer: PeerID, to held: HeldGroup, context: [UInt8], timeout: Duration?) -> Invitation {
        if let pending = self.invitations.pendingGroup(with: peer, .outgoing), let entry = self.invitations[pending] {
            return entry.invitation
        }
        let isMember = held.records.membership.contains(peer)
        var timeout = timeout ?? self.settings.invitationTimeout
        if timeout <= .zero { timeout = self.settings.invitationTimeout }
        timeout = min(timeout, EarshotLimits.invitationTimeout)
        let invitation = Invitation(
            id: self.fresh(), direction: .outgoing, peerID: peer, peerName: self.records[peer]?.name ?? peer.description, context: context,
            state: isMember ? .accepted : .pending, created: self.now.wall, end: self.now.wall + timeout, group: self.invited(held))
        self.invitations.add(invitation, until: self.now.monotonic + timeout)
        guard !isMember else { return invitation }
        self.set(.invitation(invitation.id), after: timeout)
        self.sendGroupInvitation(to: peer)
        self.records[peer]?.reach.forgetFailures()
        self.ensureConnection(peer, now: true)
        self.redialConfigured(peer, after: .zero)
        // Sending may already have failed the invitation, if the peer does not support groups.
        return self.invitations[invitation.id]?.invitation ?? invitation
    }

    private func invited(_ held: HeldGroup) -> InvitedGroup {
        InvitedGroup(
            id: held.id, name: held.records.terms.name.description, creator: held.records.charter.creator,
            members: held.records.membership.members.count)
    }

    /// Sends the pending invitation of a peer on its present connection, once per connection.
    mutating func sendGroupInvitation(to id: PeerID) {
        guard let current = self.records[id]?.link.current, let pending = self.invitations.pendingGroup(with: id, .outgoing),
            let entry = self.invitations[pending], entry.sentOn != current.id, let group = entry.invitation.group,
            !self.invitations.isUnanswered(by: id, on: current.id),
            let held = self.groups[group.id], let own = held.records.seat(of: self.id), let number = held.records.nextNumber(of: id)
        else { return }
        guard self.knowsGroups(current.facts) else {
            self.resolveInvitation(pending, .failed, EarshotError(.unsupported, Self.words(noGroups: entry.invitation.peerName)))
            return
        }
        guard self.mayCarry(held, current.facts) else {
            let words = "\(entry.invitation.peerName) is connected without TLS, and the group is for protected connections"
            self.resolveInvitation(pending, .failed, EarshotError(.encryptionMismatch, words))
            return
        }
        self.invitations.sent(pending, on: current.id, seatNumber: number)
        let invite = GroupInvite(
            id: pending, timeoutMilliseconds: self.invitations.millisecondsLeft(of: pending, at: self.now.monotonic),
            charter: held.records.charter, terms: held.records.terms,
            members: UInt8(clamping: held.records.membership.members.count), voucherNumber: own.number, seatNumber: number,
            context: entry.invitation.context)
        self.send(.group(.invite(invite)), on: current.id)
    }

    static func words(noGroups name: String) -> String { "\(name) runs an older version, which has no groups" }

    // MARK: Incoming invitations

    mutating func groupInvitationCame(_ invite: GroupInvite, from id: PeerID, on link: LinkID) {
        guard let current = self.records[id]?.link.current else { return }
        if let known = self.invitations[invite.id], !(known.hasLapsed && known.invitation.peerID == id) {
            return self.groupInvitationCameAgain(known, from: id, on: link)
        }
        // An invitation with false statements about the group is declined, like one that the policy declines.
        guard !invite.terms.isDissolved, !invite.charter.isClosed || invite.charter.creator == id,
            current.facts.protection == .encrypted || invite.charter.isUnprotected, invite.seatNumber <= EarshotLimits.groupSeatNumber,
            let input = try? invite.terms.signedBytes(in: invite.charter.id)
        else { return self.answerGroup(invite.id, .declined, on: link) }
        guard self.records[id]?.groups.mayCheckMore(at: self.now.monotonic) == true else {
            return self.answerGroup(invite.id, .busy, on: link)
        }
        let check = ProofCheck(
            scheme: invite.charter.creatorScheme, publicKey: invite.charter.creatorKey, input: input, signature: invite.terms.signature)
        let hold = self.hold(WireLimits.groupRecord + invite.context.count)
        self.emit(.check(self.groups.signatures.beginChecking(.invitation(invite, from: id, link, hold)), [[check]]))
    }

    /// Handles an invitation after the check has shown that the creator signed the group's name.
    mutating func groupInvitationChecked(_ invite: GroupInvite, from id: PeerID, on link: LinkID) {
        self.expireTrust(id)
        guard let record = self.records[id], self.invitations[invite.id]?.invitation.state != .pending else { return }
        self.cancelFormer(self.invitations.pendingGroup(with: id, .incoming), on: link)
        if let held = self.groups[invite.charter.id] { return self.invitedToHeld(held, invite, by: id, on: link) }
        let isBusy =
            Direction.incoming.isPending(with: id, in: self.invitations) || !self.mayInvite(record)
            || self.groups.count >= EarshotLimits.groups
        guard !isBusy else { return self.answerGroup(invite.id, .busy, on: link) }
        let outcome = self.policy(of: record).groupInvitation(self.settings.groupInvitations).outcome
        guard outcome != .hide else { return self.declineLater(invite.id, isToGroup: true, on: link) }
        guard outcome != .ask || self.hasRoom(forInvitationOf: record) else { return self.answerGroup(invite.id, .busy, on: link) }
        let timeout = Duration.milliseconds(Int64(invite.timeoutMilliseconds))
        let group = InvitedGroup(
            id: invite.charter.id, name: invite.terms.name.description, creator: invite.charter.creator, members: Int(invite.members))
        let invitation = Invitation(
            id: invite.id, direction: .incoming, peerID: id, peerName: record.name, context: invite.context, state: .pending,
            created: self.now.wall, end: self.now.wall + timeout, group: group)
        self.invitations.add(invitation)
        self.invitations.keep(invite, on: link)
        self.set(.invitation(invite.id), after: timeout)
        self.publish(.invitationReceived(invitation))
        switch outcome {
        case .ask, .hide: break
        case .reject: self.resolveInvitation(invite.id, .declined, answering: .declined)
        case .accept: self.acceptGroup(invite.id, nil)
        }
    }

    /// Answers an invitation to a group that this machine is in, or that is over.
    private mutating func invitedToHeld(_ held: HeldGroup, _ invite: GroupInvite, by id: PeerID, on link: LinkID) {
        switch held.stage {
        case .over: self.answerGroup(invite.id, .declined, on: link)
        // The inviter of the other invitation has not answered yet, and this inviter may try again.
        case .joining: self.answerGroup(invite.id, .busy, on: link)
        case .joined:
            guard let seat = held.records.seat(of: self.id) else { return self.answerGroup(invite.id, .declined, on: link) }
            self.answerAsMember(invite.id, seat, in: held.id, to: id)
        }
    }

    /// Answers an inviter that does not know yet that this machine is a member. The inviter is shown this machine's seat, and accepts it as
    /// the answer. If the inviter is not a member by the records here, neither side names the group to the other. This side then shows it
    /// the end of its membership, or the seats on which this machine's seat rests.
    private mutating func answerAsMember(_ invitation: InvitationID, _ seat: GroupSeat, in group: GroupID, to id: PeerID) {
        self.answerGroup(invitation, .accepted(seat), on: self.records[id]?.connection)
        guard let records = self.groups[group]?.records, !records.membership.contains(id) else { return }
        self.showEnd(of: group, to: id)
        if records.removals[id] == nil { self.showSeat(in: group, to: id) }
    }

    /// Handles an invitation that is repeated on a new connection: the inviter has not heard its outcome.
    private mutating func groupInvitationCameAgain(_ known: InvitationTable.Entry, from id: PeerID, on link: LinkID) {
        let invitation = known.invitation
        guard invitation.direction == .incoming, invitation.peerID == id, let group = invitation.group else { return }
        self.inviterIsThere(invitation.id)
        if let seat = self.groups[group.id]?.ownSeat, self.groups[group.id]?.invitation == invitation.id {
            self.answerGroup(invitation.id, .accepted(seat), on: link)
            if seat.warrant.role == .creator { self.send(.group(.record(.seat(seat), of: group.id)), on: link) }
            return
        }
        switch invitation.state {
        case .pending: self.invitations.came(invitation.id, on: link)
        case .accepted:
            guard let seat = self.groups[group.id]?.records.seat(of: self.id) else { fallthrough }
            self.answerAsMember(invitation.id, seat, in: group.id, to: id)
        case .declined, .timedOut, .cancelled, .failed: self.answerGroup(invitation.id, .declined, on: link)
        }
    }

    func answerGroup(_ answer: GroupInviteAnswer) -> Frame { .group(.inviteAnswer(answer)) }

    mutating func answerGroup(_ id: InvitationID, _ decision: GroupInviteAnswer.Decision, on link: LinkID?) {
        self.send(self.answerGroup(GroupInviteAnswer(id: id, decision: decision)), on: link)
    }

    // MARK: Joining

    /// Accepts an invitation to a group, on behalf of a user or the settings. The call is answered when the inviter has let this machine
    /// in.
    mutating func acceptGroup(_ id: InvitationID, _ call: CallID?) {
        guard let entry = self.invitations[id], let invite = entry.groupInvite, let key = self.key, let name = self.settings.name else {
            return self.acceptanceFailed(call, EarshotError(.unavailable, "this machine has no key to sign with"))
        }
        guard self.groups.count < EarshotLimits.groups else { return self.acceptanceFailed(call, .tooManyGroups) }
        guard self.groups[invite.charter.id] == nil else {
            return self.acceptanceFailed(call, EarshotError(.conflict, "the group is being joined already, by another invitation"))
        }
        // The creator of a group that left it needs no voucher: it countersigns its own seat.
        let isOwn = invite.charter.creator == self.id
        let seat = GroupSeat(
            publicKey: key.publicKey, scheme: key.scheme, name: name, number: invite.seatNumber,
            joinedAtMilliseconds: self.now.wall.milliseconds, voucher: isOwn ? self.id : entry.invitation.peerID,
            voucherNumber: isOwn ? invite.seatNumber : invite.voucherNumber, warrant: GroupSeat.Warrant(isOwn ? .creator : .voucher))
        guard let input = try? seat.signedBytes(as: .peer, in: invite.charter.id),
            let warrant = try? seat.signedBytes(as: seat.warrant.role, in: invite.charter.id)
        else { return self.acceptanceFailed(call, EarshotError(.invalidParameter, "the seat in the group cannot be made")) }
        self.invitations.setDeciding(id, true)
        let signing = GroupSigning.application(seat, to: invite.charter.id, id, call)
        self.emit(.sign(self.groups.signatures.beginSigning(signing), isOwn ? [input, warrant] : [input]))
    }

    private mutating func acceptanceFailed(_ call: CallID?, _ error: EarshotError) {
        if let call { self.answer(call, .failure(error)) }
    }

    /// Sends the acceptance, after the seat was signed.
    mutating func applied(_ seat: GroupSeat, _ id: InvitationID, _ call: CallID?) {
        guard let entry = self.invitations[id], entry.invitation.state == .pending, let invite = entry.groupInvite,
            self.groups[invite.charter.id] == nil
        else {
            self.invitations.setDeciding(id, false)
            return self.acceptanceFailed(call, EarshotError(.conflict, "the invitation was over meanwhile", remedy: .listInvitations))
        }
        // This machine may have joined other groups while this was signed.
        guard self.groups.count < EarshotLimits.groups else {
            self.invitations.setDeciding(id, false)
            return self.acceptanceFailed(call, .tooManyGroups)
        }
        var held = HeldGroup(records: GroupRecords(invite.charter, invite.terms), stage: .joining(id))
        held.take(seat, for: call)
        let link = self.records[entry.invitation.peerID]?.connection
        self.answerGroup(id, .accepted(seat), on: link)
        if link != entry.cameOn { self.awaitInviter(id) }
        if seat.warrant.role == .creator {
            held.records.merge(.seat(seat))
            self.send(.group(.record(.seat(seat), of: held.id)), on: link)
        }
        self.endSession(named: held.id)
        // No user has to decide any more. Another stranger can take the place, and no stranger can displace this joining.
        if self.invitations.pending(with: entry.invitation.peerID, .incoming) == nil {
            self.strangers.invitations.places.release(entry.invitation.peerID)
        }
        self.groups.add(held)
        self.publishGroup(held.id)
        self.ensureConnection(entry.invitation.peerID, now: true)
    }

    /// Ends a session whose peer gave it an id that it knew to be a group's. Messages of the session would be mistaken for messages of the
    /// group.
    private mutating func endSession(named group: GroupID) {
        guard let peer = self.records.keys.first(where: { self.records[$0]?.sessionID == group.session }) else { return }
        self.log(Notice(.warning, "a peer has named a group as its session, which ends", ["peer": peer, "group": group]))
        self.endSession(with: peer, tellPeer: true)
        self.keepPeer(peer, andSession: true)
    }

    /// Completes the joining after the write succeeded or failed.
    mutating func joined(_ id: GroupID, _ error: EarshotError?) {
        guard let held = self.groups[id], let invitation = held.invitation else { return }
        if let error { return self.stopJoining(id, invitation, .failed, error) }
        self.groups.update(id) { $0.join() }
        self.invitations.setDeciding(invitation, false)
        let seat = held.records.seat(of: self.id)
        let decided = self.resolveInvitation(invitation, .accepted)
        // Other peers that have invited this machine to the group get the same answer.
        for other in self.invitations.pendingIDs(to: id) {
            guard let entry = self.invitations[other], entry.invitation.direction == .incoming else { continue }
            if let seat { self.answerAsMember(other, seat, in: id, to: entry.invitation.peerID) }
            self.resolveInvitation(other, .accepted)
        }
        self.tie(id)
        self.keepGroup(id)
        // Changes that came during the write take effect now: the group may be dissolved, or this machine's seat may be void.
        if held.records.terms.isDissolved || !held.records.membership.contains(self.id) {
            self.groupChanged(id, [.terms(held.records.terms)], from: nil)
        }
        self.publishGroup(id)
        guard let decided = decided ?? self.invitations[invitation]?.invitation else { return }
        for call in held.joiners { self.answer(call, .invitation(decided)) }
    }

    /// Stops joining a group. Reasons are: the inviter has left or has not answered in time, a user cancelled, or the disk is full.
    mutating func stopJoining(_ id: GroupID, _ invitation: InvitationID, _ state: Invitation.State, _ error: EarshotError) {
        guard let held = self.groups.remove(id) else { return }
        let knowing = self.records.values.filter { $0.groups.heard[id] != nil }.map(\.id)
        self.forgetNames(of: id)
        self.invitations.setDeciding(invitation, false)
        self.resolveInvitation(invitation, state, error)
        self.publish(.groupLeft(id, .left))
        for call in held.joiners { self.answer(call, .failure(error)) }
        // The inviter may have let this machine in already, and considers it a member. So do the peers that have named the group, and they
        // would not name it again.
        guard let seat = held.records.seat(of: self.id) else { return }
        let inviter = self.invitations[invitation]?.invitation.peerID
        self.leaveUnheld(seat, id, to: OrderedSet([inviter].compactMap(\.self) + knowing))
    }
}

extension Direction {
    /// Whether a peer has a pending invitation of either kind in that direction. A peer has one at most.
    func isPending(with peer: PeerID, in table: InvitationTable) -> Bool {
        table.pending(with: peer, self) != nil || table.pendingGroup(with: peer, self) != nil
    }
}
