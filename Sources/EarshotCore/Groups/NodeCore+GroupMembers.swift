import DequeModule
import EarshotWire
import OrderedCollections

/// Consequences of changed records: peers, or this machine, become members or stop being members.
extension NodeCore {
    /// Handles records that were merged, at least in memory.
    mutating func groupChanged(_ id: GroupID, _ new: [GroupRecord], from source: PeerID?) {
        guard let held = self.groups[id], !new.isEmpty else { return }
        if let invitation = held.invitation { return self.joiningChanged(held, invitation) }
        // Former members receive the records too, so that they hear why they were removed.
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

    /// Handles merged records of a group that is being joined.
    private mutating func joiningChanged(_ held: HeldGroup, _ invitation: InvitationID) {
        if held.isLetIn {
            let decision = Decision.group(.join(held.id, by: invitation))
            if !self.decisions.contains(decision) { self.decide(decision) }
        } else if let seat = held.ownSeat, let removal = held.records.removals[self.id], removal.number >= seat.number {
            // The removal came before this machine heard that it was let in.
            let words = "this machine was taken out of the group \(held.records.terms.name) at once"
            self.stopJoining(held.id, invitation, .failed, EarshotError(.notMember, words))
        } else if let inviter = self.invitations[invitation]?.invitation, held.records.end(of: inviter.peerID) != nil,
            held.records.membership.members.isEmpty
        {
            // Any remaining member would know whether this machine was let in.
            let words = "\(inviter.peerName) has left the group \(held.records.terms.name), and nobody is left in it"
            self.stopJoining(held.id, invitation, .failed, EarshotError(.notMember, words))
        }
    }

    /// Loads the members of a group from an earlier run. Messages can wait for them before this machine connects.
    mutating func loadTies(_ records: GroupRecords) {
        let joined = WallTime(milliseconds: records.seat(of: self.id)?.joinedAtMilliseconds ?? records.charter.createdAtMilliseconds)
        for peer in records.membership.members.map(\.peer) where peer != self.id {
            self.makeRecord(peer, at: joined)
            _ = self.records[peer]?.groups.join(records.id)
        }
    }

    /// Resumes a group from an earlier run. If this machine has another key now, the group is not its own any more.
    mutating func resumeGroup(_ id: GroupID) {
        guard let membership = self.groups[id]?.records.membership else { return }
        guard membership.isCandidate(self.id) else { return self.groupIsLost(id) }
        self.tie(id)
    }

    /// Marks a group as dissolved by its creator. The group is kept for members that have not heard of it.
    private mutating func groupIsOver(_ id: GroupID) {
        self.groups.update(id) { $0.end() }
        self.untie(id, EarshotError(.notMember, "the group is dissolved"))
        self.publish(.groupLeft(id, .dissolved))
        guard let oldest = self.groups.surplus else { return }
        self.groups.remove(oldest)
        self.keepGroup(oldest)
    }

    /// Drops a group of which this machine is no longer a member.
    private mutating func groupIsLost(_ id: GroupID) {
        guard let held = self.groups.remove(id) else { return }
        let hasLeft = held.records.leaves[self.id] != nil && held.records.removals[self.id] == nil
        self.deadlines.cancel(.groupQuiet(id))
        self.untie(id, EarshotError(.notMember, "this machine is in the group no longer"))
        self.forgetNames(of: id)
        self.keepGroup(id)
        self.publish(.groupLeft(id, hasLeft ? .left : .removed))
    }

    /// Updates the list of peers that share a group with this machine. A peer that is new here may not know of this machine's seat, and is
    /// shown it: the source of the news may never tell that peer.
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

    /// Ends the ties of all peers in a group.
    mutating func untie(_ id: GroupID, _ error: EarshotError) {
        self.groups.forgetNews(of: id)
        for invitation in self.invitations.pendingIDs(to: id) {
            self.resolveInvitation(invitation, .cancelled, error, withdrawing: .withdrawn)
        }
        for peer in self.records.values.filter({ $0.groups.shared.contains(id) }).map(\.id) { self.part(peer, from: id, error) }
    }

    /// Forgets the names of a group that this machine no longer holds. If the group is joined again, this machine shows its new seat to
    /// every peer that does not name the group to that seat.
    mutating func forgetNames(of id: GroupID) {
        for peer in self.records.keys { self.records[peer]?.groups.forgetName(of: id) }
    }

    private mutating func part(_ peer: PeerID, from id: GroupID, _ error: EarshotError) {
        let conversation = Conversation(with: peer, in: id)
        self.endConversation(conversation, error)
        self.records[peer]?.groups.part(id)
        // The sender may never hear of this. If a member was restored from a backup, its records show it out and in again.
        self.endTransfers(in: conversation, error, told: Refusal(code: .notConnected))
        self.publishPeer(peer)
    }

    /// Accepts the pending invitations of peers that are members now, whichever member let them in.
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
        guard self.knowsGroups(facts) else { return false }
        return facts.protection == .encrypted || held.records.charter.isUnprotected
    }

    /// Whether only groups need a peer's connection.
    func isWantedForGroupsAlone(_ record: PeerRecord) -> Bool {
        record.sessionID == nil && !self.isInviting(record.id) && record.comparing.state != .waiting
            && self.invitations.pendingGroup(with: record.id, .outgoing) == nil
    }

    /// Whether to dial a member. Above a number of connections, only members with pending messages or transfers are dialled.
    func isWantedForGroups(_ record: PeerRecord) -> Bool {
        guard !record.groups.isEmpty else { return false }
        guard self.records.count > EarshotLimits.groupLinks else { return true }
        let others = self.records.values.count { !$0.groups.isEmpty && $0.connection != nil }
        guard others >= EarshotLimits.groupLinks else { return true }
        if self.transfers.count(of: record.id, .ready) > 0 { return true }
        return record.groups.shared.contains { self.traffic[Conversation(with: record.id, in: $0)]?.outbox.isEmpty == false }
    }

    /// Returns a random delay before a member is dialled for groups alone. Without the delay, all members would dial at once after a group
    /// is made, and each pair twice.
    mutating func groupDialDelay(_ id: PeerID) -> Duration {
        let random = Int64.random(in: 1...EarshotLimits.groupDialDelay.wholeMilliseconds, using: &self.random)
        return .milliseconds(random) + (self.id < id ? .zero : EarshotLimits.higherPeerDialDelay)
    }

    /// Whether the limit on concurrent dials to members is reached.
    var isDiallingManyMembers: Bool {
        self.records.values.count { $0.reach.isBusy && !$0.groups.isEmpty && self.isWantedForGroupsAlone($0) } >= EarshotLimits.groupDials
    }

    /// Clears the ties of a peer whose connection was established or lost. Statements about groups on an earlier connection no longer
    /// count.
    mutating func renewTies(with id: PeerID) {
        guard let ties = self.records[id]?.groups else { return }
        for hold in ties.holds { self.release(hold) }
        self.records[id]?.groups.renew()
        self.deadlines.cancel(.groupRecords(id))
        self.deadlines.cancel(.groupQuestions(id))
        for group in ties.shared { self.publishGroupSoon(group) }
    }

    /// Ends all group traffic with a peer that a user here has blocked. The peer receives only refusals of its offers.
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
