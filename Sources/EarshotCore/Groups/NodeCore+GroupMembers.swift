import DequeModule
import EarshotWire
import OrderedCollections

/// What follows from a group's records: members come and go, this machine among them.
extension NodeCore {
    /// Records have been merged, in memory at least.
    mutating func groupChanged(_ id: GroupID, _ new: [GroupRecord], from source: PeerID?) {
        guard let held = self.groups[id], !new.isEmpty else { return }
        if let invitation = held.invitation { return self.joiningChanged(held, invitation) }
        // Also to those that are members no longer, for them to hear why.
        self.passOn(new, of: id, but: source)
        self.keepGroup(id)
        self.set(.groupQuiet(id), after: EarshotLimits.groupQuiet)
        guard held.isJoined else { return }
        if held.records.terms.isDissolved { return self.groupIsOver(id) }
        let membership = held.records.membership
        guard membership.isCandidate(self.id) else { return self.groupIsLost(id) }
        self.tie(id)
        self.resolveInvitations(ofMembersOf: id)
        self.publishGroup(id)
    }

    /// Records have come of a group that is being joined.
    private mutating func joiningChanged(_ held: HeldGroup, _ invitation: InvitationID) {
        if held.isLetIn {
            let decision = Decision.group(.join(held.id, by: invitation))
            if !self.decisions.contains(decision) { self.decide(decision) }
        } else if let seat = held.ownSeat, let removal = held.records.removals[self.id], removal.number >= seat.number {
            // Before it had heard that it was let in.
            let words = "this machine was taken out of the group \(held.records.terms.name) at once"
            self.stopJoining(held.id, invitation, .failed, EarshotError(.notMember, words))
        } else if let inviter = self.invitations[invitation]?.invitation, held.records.end(of: inviter.peerID) != nil,
            held.records.membership.members.isEmpty
        {
            // Others who are still in it would know whether this machine was let in.
            let words = "\(inviter.peerName) has left the group \(held.records.terms.name), and nobody is left in it"
            self.stopJoining(held.id, invitation, .failed, EarshotError(.notMember, words))
        }
    }

    /// Members of a group from an earlier run are known, also before this machine begins to work: messages wait for them.
    mutating func loadTies(_ records: GroupRecords) {
        let joined = WallTime(milliseconds: records.seat(of: self.id)?.joinedAtMilliseconds ?? records.charter.createdAtMilliseconds)
        for peer in records.membership.members.map(\.peer) where peer != self.id {
            if self.records[peer] == nil { self.records[peer] = PeerRecord(id: peer, at: joined) }
            _ = self.records[peer]?.groups.join(records.id)
        }
    }

    /// A group is there from an earlier run; under another key of this machine's it is another's.
    mutating func resumeGroup(_ id: GroupID) {
        guard let membership = self.groups[id]?.records.membership else { return }
        guard membership.isCandidate(self.id) else { return self.groupIsLost(id) }
        self.tie(id)
    }

    /// Its creator has dissolved it: kept for those that have not heard of it.
    private mutating func groupIsOver(_ id: GroupID) {
        self.groups.update(id) { $0.stage = .over }
        self.untie(id, EarshotError(.notMember, "the group is dissolved"))
        self.publish(.groupLeft(id, .dissolved))
        guard let oldest = self.groups.surplus else { return }
        self.groups.remove(oldest)
        self.keepGroup(oldest)
    }

    /// This machine is no member any more.
    private mutating func groupIsLost(_ id: GroupID) {
        guard let held = self.groups.remove(id) else { return }
        let hasLeft = held.records.leaves[self.id] != nil && held.records.removals[self.id] == nil
        self.deadlines.cancel(.groupQuiet(id))
        self.untie(id, EarshotError(.notMember, "this machine is in the group no longer"))
        self.forgetNames(of: id)
        self.keepGroup(id)
        self.publish(.groupLeft(id, hasLeft ? .left : .removed))
    }

    /// Keeps up which peers are in a group with this machine. Who is known for a member only now may not know of this machine's seat, and is
    /// shown it: whoever has told this side may never tell the other.
    mutating func tie(_ id: GroupID) {
        guard let held = self.groups[id] else { return }
        let members = OrderedSet(held.records.membership.members.map(\.peer).filter { $0 != self.id })
        for peer in members {
            self.makeRecord(peer)
            guard self.records[peer]?.groups.join(id) == true else { continue }
            self.showSeat(in: id, to: peer)
            self.nameGroup(id, to: peer)
            self.ensureConnection(peer)
        }
        let gone = self.records.values.filter { $0.groups.shared.contains(id) && !members.contains($0.id) }.map(\.id)
        for peer in gone { self.part(peer, from: id, .notMember(self.records[peer]?.name ?? peer.description)) }
    }

    /// No peer is in the group with this machine any more.
    mutating func untie(_ id: GroupID, _ error: EarshotError) {
        self.groups.news.remove(id)
        for invitation in self.invitations.pendingIDs(to: id) {
            self.resolveInvitation(invitation, .cancelled, error, withdrawing: .withdrawn)
        }
        for peer in self.records.values.filter({ $0.groups.shared.contains(id) }).map(\.id) { self.part(peer, from: id, error) }
    }

    /// This machine has let a group go: where it comes back, it shows its new seat to all that do not name the group to that one.
    mutating func forgetNames(of id: GroupID) {
        for peer in self.records.keys { self.records[peer]?.groups.forgetName(of: id) }
    }

    private mutating func part(_ peer: PeerID, from id: GroupID, _ error: EarshotError) {
        let conversation = Conversation(with: peer, in: id)
        self.endConversation(conversation, error)
        self.records[peer]?.groups.part(id)
        // Its sender may never hear of that: where one was restored from a backup, its records have it out and in again.
        self.endTransfers(in: conversation, error, told: Refusal(code: .notConnected))
        self.publishPeer(peer)
    }

    /// Invitations to those that are members now, whoever has let them in, are accepted.
    mutating func resolveInvitations(ofMembersOf id: GroupID) {
        guard let held = self.groups[id] else { return }
        for invitation in self.invitations.pendingIDs(to: id) {
            guard let entry = self.invitations[invitation], entry.invitation.direction == .outgoing, !entry.isDeciding,
                held.records.membership.contains(entry.invitation.peerID)
            else { continue }
            self.resolveInvitation(invitation, .accepted)
        }
    }

    // MARK: Connections

    /// Whether a group may be talked about on a connection.
    func mayCarry(_ held: HeldGroup, _ facts: LinkFacts) -> Bool {
        guard facts.peer.extensions.contains(where: { $0.type == HelloExtension.groups.type }) else { return false }
        return facts.protection == .encrypted || held.records.charter.isUnprotected
    }

    /// Whether nothing but a group wants a peer's connection.
    func isWantedForGroupsAlone(_ record: PeerRecord) -> Bool {
        record.sessionID == nil && !self.isInviting(record.id) && record.comparing.state != .waiting
            && self.invitations.pendingGroup(with: record.id, .outgoing) == nil
    }

    /// Whether a member is dialled: up to a number of connections, and then where something waits for it.
    func isWantedForGroups(_ record: PeerRecord) -> Bool {
        guard !record.groups.isEmpty else { return false }
        guard self.records.count > EarshotLimits.groupLinks else { return true }
        let others = self.records.values.count { !$0.groups.isEmpty && $0.connection != nil }
        guard others >= EarshotLimits.groupLinks else { return true }
        if self.transfers.count(of: record.id, .ready) > 0 { return true }
        return record.groups.shared.contains { self.traffic[Conversation(with: record.id, in: $0)]?.outbox.isEmpty == false }
    }

    /// When a member is dialled that nothing else wants: all do so at once where a group is made, and one pair twice.
    mutating func groupDialDelay(_ id: PeerID) -> Duration {
        let random = Int64.random(in: 1...EarshotLimits.groupDialDelay.wholeMilliseconds, using: &self.random)
        return .milliseconds(random) + (self.id < id ? .zero : EarshotLimits.higherPeerDialDelay)
    }

    /// Whether as many members are being dialled as may be at once.
    var isDiallingManyMembers: Bool {
        self.records.values.count { $0.reach.isBusy && !$0.groups.isEmpty && self.isWantedForGroupsAlone($0) } >= EarshotLimits.groupDials
    }

    /// A peer's connection stands, or does no longer: nothing that was said of groups on another one counts.
    mutating func renewTies(with id: PeerID) {
        guard let ties = self.records[id]?.groups else { return }
        for input in ties.records { self.release(input.hold) }
        self.records[id]?.groups.renew()
        self.deadlines.cancel(.groupRecords(id))
        self.deadlines.cancel(.groupQuestions(id))
        for group in ties.shared { self.publishGroupSoon(group) }
    }

    /// A person here has blocked the peer: nothing more is sent to it, but that what it has offered is refused.
    mutating func endGroupTalk(with id: PeerID) {
        guard let record = self.records[id] else { return }
        self.renewTies(with: id)
        for group in record.groups.shared {
            let conversation = Conversation(with: id, in: group)
            self.failOutbox(of: conversation, .blocked(record.name), queuedToo: true)
            self.endTransfers(in: conversation, .blocked(record.name), told: Refusal(code: .notConnected))
            self.publishGroup(group)
        }
    }
}
