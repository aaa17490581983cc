import EarshotWire
import OrderedCollections

/// A change of a group's records on disk.
enum GroupDecision: Sendable, Hashable {
    case create(StoredGroup, CallID)
    /// Adds records that this machine made.
    case add([GroupRecord], to: GroupID, GroupCaller)
    case leave(GroupLeave, of: GroupID, CallID)
    /// Joins a group after this machine was let in, by the given invitation of those that it accepted.
    case join(GroupID, by: InvitationID)
    /// Brings the disk up to date with memory: with records that others sent, or after a user left a group that was being joined and waits
    /// for the write.
    case keep(GroupID, CallID?)
}

/// The caller or invitation that waits until this machine's records are on disk.
enum GroupCaller: Sendable, Hashable {
    /// A user's call. If `isAnsweredGroup`, it is answered with the group's new state.
    case person(CallID, isAnsweredGroup: Bool)
    /// An invitation by this machine, whose peer's seat is written.
    case invitation(InvitationID)
}

/// The result of a decision about a group.
struct GroupOutcome: Sendable {
    let group: HeldGroup
    /// The records on disk after the decision.
    let kept: OrderedDictionary<GroupRecordHash, GroupRecord>
}

/// Completed signatures, and the writing of groups.
extension NodeCore {
    // MARK: Signed

    mutating func signed(_ id: SignatureID, _ signatures: Result<[[UInt8]], EarshotError>) {
        guard let signing = self.groups.signatures.endSigning(id) else { return }
        switch signatures {
        case .success(let signatures): self.signed(signing, signatures)
        case .failure(let error): self.signingFailed(signing, error)
        }
    }

    private mutating func signed(_ signing: GroupSigning, _ signatures: [[UInt8]]) {
        guard let last = signatures.last else { return }
        switch signing {
        case .create(let charter, var terms, var seat, let call):
            guard signatures.count == 3 else { return }
            terms.signature = signatures[0]
            seat.signature = signatures[1]
            seat.warrant.signature = signatures[2]
            let stored = StoredGroup(charter: charter, records: [.terms(terms), .seat(seat)], isOver: false)
            self.decide(.group(.create(stored, call)))
        case .terms(var terms, let group, let call):
            terms.signature = last
            self.decide(.group(.add([.terms(terms)], to: group, .person(call, isAnsweredGroup: !terms.isDissolved))))
        case .leave(var leave, let group, let call):
            leave.signature = last
            self.decide(.group(.leave(leave, of: group, call)))
        case .leaveUnheld(var leave, let group, let link):
            leave.signature = last
            // While this was being signed, the connection may have been lost. If the peer was blocked meanwhile, it must not notice.
            if self.links.peer(of: link) != nil, !self.isMuted(link) { self.send(.group(.record(.leave(leave), of: group)), on: link) }
        case .removal(var removal, let seats, let group, let call):
            removal.signature = last
            var records: [GroupRecord] = []
            for (var seat, signature) in zip(seats, signatures) {
                seat.warrant = GroupSeat.Warrant(.creator, signature: signature)
                records.append(.seat(seat))
            }
            self.decide(.group(.add(records + [.removal(removal)], to: group, .person(call, isAnsweredGroup: true))))
        case .application(var seat, _, let invitation, let call):
            guard let first = signatures.first else { return }
            seat.signature = first
            if signatures.count > 1 { seat.warrant.signature = last }
            self.applied(seat, invitation, call)
        case .warrant(var seat, let invitation):
            seat.warrant.signature = last
            guard let group = self.invitations[invitation]?.invitation.group?.id else { return }
            self.decide(.group(.add([.seat(seat)], to: group, .invitation(invitation))))
        }
    }

    private mutating func signingFailed(_ signing: GroupSigning, _ error: EarshotError) {
        switch signing {
        case .create(_, _, _, let call), .terms(_, _, let call), .leave(_, _, let call), .removal(_, _, _, let call):
            self.answer(call, .failure(error))
        case .application(_, _, let invitation, let call):
            self.invitations.setDeciding(invitation, false)
            if let call { self.answer(call, .failure(error)) }
        case .warrant(_, let invitation):
            self.invitations.setDeciding(invitation, false)
            self.resolveInvitation(invitation, .failed, error, withdrawing: .withdrawn)
        case .leaveUnheld: break
        }
    }

    // MARK: Written

    /// Computes the outcome of a decision from the present state.
    mutating func make(_ decision: GroupDecision) throws(EarshotError) -> (DecisionOutcome, [StoreOperation]) {
        switch decision {
        case .create(let stored, _):
            guard self.groups.count < EarshotLimits.groups else { throw .tooManyGroups }
            guard let records = GroupRecords(stored) else { throw EarshotError(.invalidParameter, "the group has no name") }
            return self.outcome(HeldGroup(records: records, stage: .joined))
        case .add(let new, let id, let caller):
            guard var held = self.groups[id], held.isJoined else { throw .unknownGroup(id.description) }
            guard !self.isInvitationOver(of: caller) else { throw EarshotError(.conflict, "the invitation was over meanwhile") }
            for record in new { if let refusal = held.records.merge(record) { throw Self.error(refusal) } }
            guard new.allSatisfy(held.records.goesOn) else { throw Self.error(.full) }
            held.applyTerms()
            return self.outcome(held)
        case .leave(let leave, let id, _):
            guard let held = self.groups[id], held.isJoined else { throw .unknownGroup(id.description) }
            // After a restore from a backup, this machine may have heard of its later seat only now. Others would consider it a member by
            // that seat.
            guard held.records.highestSeat(of: self.id) ?? 0 <= leave.number else { throw Self.hasChanged }
            return (.group(GroupOutcome(group: held, kept: [:])), [.removeGroup(id)])
        case .join(let id, let invitation):
            guard var held = self.groups[id], held.invitation == invitation, held.isLetIn else {
                throw EarshotError(.conflict, "the group is joined already")
            }
            // If the group was dissolved while this decision was queued, the next start must not treat it as active.
            held.applyTerms()
            return self.outcome(held)
        case .keep(let id, _):
            guard let held = self.groups[id], held.invitation == nil else {
                return (.kept, self.groups.gone.contains(id) ? [.removeGroup(id)] : [])
            }
            return self.outcome(held)
        }
    }

    private func outcome(_ held: HeldGroup) -> (DecisionOutcome, [StoreOperation]) {
        let (operations, kept) = held.changes()
        return (.group(GroupOutcome(group: held, kept: kept)), operations)
    }

    private static func error(_ refusal: GroupRecords.Refusal) -> EarshotError {
        switch refusal {
        case .full: EarshotError(.noSpace, "the group has as many records as it can hold", remedy: .renewGroup)
        case .known, .void, .unvouched, .invalid: Self.hasChanged
        }
    }

    private static var hasChanged: EarshotError {
        EarshotError(.conflict, "the group has changed meanwhile; look at it and try again")
    }

    /// Concludes a decision after the write succeeded or failed. If the write failed, nothing has changed.
    mutating func conclude(_ decision: GroupDecision, _ result: Result<DecisionOutcome, EarshotError>) {
        var outcome: GroupOutcome?
        if case .success(.group(let made)) = result { outcome = made }
        let error: EarshotError? = if case .failure(let error) = result { error } else { nil }
        switch decision {
        case .create(_, let call):
            if let error { return self.answer(call, .failure(error)) }
            guard let outcome else { return }
            self.groups.add(outcome.group)
            self.groups.wasKept(outcome.group.id, outcome.kept)
            self.publishGroup(outcome.group.id)
            self.answer(call, .group(self.snapshot(outcome.group)))
        case .add(let new, let id, let caller):
            if let outcome { self.groups.wasKept(id, outcome.kept) }
            self.added(new, to: id, caller, error)
        case .leave(let leave, let id, let call):
            if let error { return self.answer(call, .failure(error)) }
            guard let held = self.groups[id], held.isJoined else { return self.leftMeanwhile(id, call) }
            self.passOn([.leave(leave)], of: id, but: nil)
            self.groups.remove(id)
            self.groups.wasRemoved(id)
            // A later seat came to light during this write. Peers to which this machine named the group are told that this seat is left
            // too.
            if let seat = held.records.seat(of: self.id), seat.number > leave.number {
                self.leaveUnheld(seat, id, to: self.records.values.filter { $0.groups.named[id] != nil }.map(\.id))
            }
            self.untie(id, EarshotError(.notMember, "this machine has left the group"))
            self.forgetNames(of: id)
            self.publish(.groupLeft(id, .left))
            self.answer(call, .done)
        case .join(let id, let invitation):
            guard self.groups[id]?.invitation == invitation else {
                // A user cancelled the joining during the write, and may be joining the group by another invitation.
                guard error == nil else { return }
                self.groups.isGone(id)
                return self.keepGroup(id)
            }
            if let outcome { self.groups.wasKept(id, outcome.kept, joinedBy: invitation) }
            self.joined(id, error)
        case .keep(let id, let call):
            if let outcome { self.groups.wasKept(id, outcome.kept) } else if error == nil { self.groups.wasRemoved(id) }
            if error != nil, !self.isStopping { self.set(.keepGroup(id), after: EarshotLimits.keepPause) }
            if let call { self.answer(call, error.map { .failure($0) } ?? .done) }
        }
    }

    /// Concludes a leave that was written after the group had ended for this machine. The group's end was published already, and the group
    /// may be joined again now.
    private mutating func leftMeanwhile(_ id: GroupID, _ call: CallID) {
        if self.groups[id]?.isOver == true { self.groups.remove(id) }
        self.groups.wasRemoved(id)
        self.answer(call, .done)
    }

    /// Whether records belong to an invitation that was withdrawn, or failed, while they were being signed or written.
    private func isInvitationOver(of caller: GroupCaller) -> Bool {
        guard case .invitation(let id) = caller else { return false }
        return self.invitations[id]?.invitation.state != .pending
    }

    /// Merges this machine's records after they were written, and answers their caller.
    private mutating func added(_ new: [GroupRecord], to id: GroupID, _ caller: GroupCaller, _ error: EarshotError?) {
        if error == nil {
            // Memory does not hold the seat, so this write removes it from the disk too.
            guard !self.isInvitationOver(of: caller) else { return self.keepGroup(id) }
            var merged: [GroupRecord] = []
            for record in new where self.groups.update(id, { $0.records.merge(record) == nil }) == true { merged.append(record) }
            if case .invitation(let invitation) = caller { self.welcome(invitation, to: id) }
            self.groupChanged(id, merged, from: nil)
        }
        switch caller {
        case .person(let call, let isAnsweredGroup):
            if let error { return self.answer(call, .failure(error)) }
            guard isAnsweredGroup, let held = self.groups[id] else { return self.answer(call, .done) }
            self.answer(call, .group(self.snapshot(held)))
        case .invitation(let invitation):
            self.invitations.setDeciding(invitation, false)
            if error == nil { self.resolveInvitations(ofMembersOf: id) }
            // The peer may have left that seat already, according to other members. The user has to invite it again.
            let words = "the peer has left the group by the seat that it was invited to; invite it again"
            self.resolveInvitation(invitation, .failed, error ?? EarshotError(.conflict, words), withdrawing: .withdrawn)
        }
    }

    /// Writes a group's state in memory to disk.
    mutating func keepGroup(_ id: GroupID) {
        let decision = Decision.group(.keep(id, nil))
        guard !self.decisions.contains(decision) else { return }
        self.decide(decision)
    }
}
