import EarshotWire
import OrderedCollections

/// Invitations of both directions, in the order in which they were made: the pending ones, and the last that were decided.
struct InvitationTable: Sendable {
    struct Entry: Sendable {
        fileprivate(set) var invitation: Invitation
        /// When an outgoing one is over, by the clock that nobody sets.
        fileprivate(set) var deadline: MonotonicInstant?
        /// The connection on which an outgoing one was last sent.
        fileprivate(set) var sentOn: LinkID?
        /// The number of the seat that one to a group gives there.
        fileprivate(set) var seatNumber: UInt32 = 0
        /// Whether the peer has neither answered it there nor heard that it is taken back: the connection carries no other one till then.
        fileprivate(set) var isUnanswered = false
        /// The connection on which an incoming one last came.
        fileprivate(set) var cameOn: LinkID?
        /// Whether the peer that made it is away, and has a while to come back.
        fileprivate(set) var isInviterAbsent = false
        /// Whether it is over because its inviter had gone, and not by any person's word: sent again, it counts as a new one.
        fileprivate(set) var hasLapsed = false
        /// Whether a decision about it is on its way to the disk: another one comes too late.
        fileprivate(set) var isDeciding = false
        /// What an incoming one to a group says.
        fileprivate(set) var groupInvite: GroupInvite?
        /// Calls that wait for its end.
        fileprivate(set) var waiters: [CallID] = []

        /// Whether a pending one to a group was answered on this connection by a seat that others have vouched for, which their records have yet
        /// to show.
        func isAnsweredAsMember(on link: LinkID?) -> Bool {
            self.invitation.direction == .outgoing && self.invitation.group != nil && link != nil && self.sentOn == link
                && !self.isUnanswered
        }

        /// Whether it is one to a group that the peer has on this connection, and has not answered.
        fileprivate func isUnanswered(on link: LinkID?) -> Bool {
            self.isUnanswered && link != nil && self.sentOn == link && self.invitation.group != nil
        }
    }

    /// A peer has one pending invitation of each direction at most that is to a session, and one to a group.
    private struct Place: Hashable, Sendable {
        let peer: PeerID
        let direction: Direction
        let isToGroup: Bool
    }

    private var entries: OrderedDictionary<InvitationID, Entry> = [:]
    private var pending: [Place: InvitationID] = [:]
    private var decided = 0

    subscript(id: InvitationID) -> Entry? { self.entries[id] }

    /// In the order in which they were made; the pending ones alone unless `all`.
    func list(all: Bool) -> [Invitation] { self.entries.values.map(\.invitation).filter { all || $0.state == .pending } }

    var pendingCount: Int { self.entries.count - self.decided }

    /// The pending one to a session.
    func pending(with peer: PeerID, _ direction: Direction) -> InvitationID? {
        self.pending[Place(peer: peer, direction: direction, isToGroup: false)]
    }

    /// The pending one to a group.
    func pendingGroup(with peer: PeerID, _ direction: Direction) -> InvitationID? {
        self.pending[Place(peer: peer, direction: direction, isToGroup: true)]
    }

    /// Those of both kinds.
    func allPending(with peer: PeerID, _ direction: Direction) -> [InvitationID] {
        [self.pending(with: peer, direction), self.pendingGroup(with: peer, direction)].compactMap(\.self)
    }

    /// The pending ones to a group, in the order in which they were made.
    func pendingIDs(to group: GroupID) -> [InvitationID] {
        self.entries.values.filter { $0.invitation.state == .pending && $0.invitation.group?.id == group }.map(\.invitation.id)
    }

    private func place(of invitation: Invitation) -> Place {
        Place(peer: invitation.peerID, direction: invitation.direction, isToGroup: invitation.group != nil)
    }

    /// Whether the time of one that the peer has sent on this connection was over here before the peer has said so.
    func isWithdrawalDue(from peer: PeerID, on link: LinkID) -> Bool {
        self.entries.values.contains {
            $0.cameOn == link && $0.invitation.state == .timedOut && $0.invitation.peerID == peer && $0.invitation.group == nil
        }
    }

    /// Adds one in the place of another of its id; of the decided ones only the last stay.
    mutating func add(_ invitation: Invitation, until deadline: MonotonicInstant? = nil) {
        if let old = self.entries.removeValue(forKey: invitation.id), old.invitation.state != .pending { self.decided -= 1 }
        self.entries[invitation.id] = Entry(invitation: invitation, deadline: deadline)
        guard invitation.state == .pending else {
            self.decided += 1
            return self.forgetDecided()
        }
        self.pending[self.place(of: invitation)] = invitation.id
    }

    /// What an incoming one to a group says, and the connection on which it came.
    mutating func keep(_ invite: GroupInvite, on link: LinkID) {
        self.entries[invite.id]?.groupInvite = invite
        self.entries[invite.id]?.cameOn = link
    }

    /// How long a pending outgoing one still waits for its answer, in milliseconds, as it is sent.
    func millisecondsLeft(of id: InvitationID, at now: MonotonicInstant) -> UInt32 {
        let left = self.entries[id]?.deadline.map { ($0 - now).wholeMilliseconds } ?? 0
        return UInt32(clamping: min(max(1, left), Int64(WireLimits.invitationTimeoutMilliseconds)))
    }

    mutating func sent(_ id: InvitationID, on link: LinkID, seatNumber: UInt32 = 0) {
        self.entries[id]?.seatNumber = seatNumber
        self.entries[id]?.sentOn = link
        self.entries[id]?.isUnanswered = true
    }

    /// An outgoing one to a group was answered on a connection, or taken back there.
    mutating func answered(_ id: InvitationID, on link: LinkID?) {
        if self.entries[id]?.sentOn == link { self.entries[id]?.isUnanswered = false }
    }

    /// Whether one to a group is unanswered on a connection that is over here, since the peer was found to be a member already.
    func isUnanswered(by peer: PeerID, on link: LinkID) -> Bool {
        self.entries.values.contains { $0.invitation.peerID == peer && $0.invitation.state != .pending && $0.isUnanswered(on: link) }
    }

    func isUnanswered(_ id: InvitationID, on link: LinkID?) -> Bool { self.entries[id]?.isUnanswered(on: link) == true }

    mutating func came(_ id: InvitationID, on link: LinkID) { self.entries[id]?.cameOn = link }
    mutating func withdrawn(_ id: InvitationID) { self.entries[id]?.cameOn = nil }
    mutating func setDeciding(_ id: InvitationID, _ isDeciding: Bool) { self.entries[id]?.isDeciding = isDeciding }
    mutating func setInviterAbsent(_ id: InvitationID, _ isAbsent: Bool) { self.entries[id]?.isInviterAbsent = isAbsent }
    mutating func lapse(_ id: InvitationID) { self.entries[id]?.hasLapsed = true }
    mutating func wait(for id: InvitationID, _ call: CallID) { self.entries[id]?.waiters.append(call) }

    /// Gives a pending one its end; the calls that have waited for it.
    mutating func resolve(
        _ id: InvitationID, _ state: Invitation.State, session: SessionID?, _ error: EarshotError?
    ) -> (invitation: Invitation, waiters: [CallID])? {
        guard var entry = self.entries[id], entry.invitation.state == .pending else { return nil }
        entry.invitation.decide(state, session: session, error)
        entry.isInviterAbsent = false
        entry.isDeciding = false
        entry.groupInvite = nil
        let waiters = entry.waiters
        entry.waiters = []
        self.entries[id] = entry
        self.decided += 1
        let place = self.place(of: entry.invitation)
        if self.pending[place] == id { self.pending[place] = nil }
        return (entry.invitation, waiters)
    }

    /// Drops the oldest decided ones beyond the limit. Called only once all that follows from a decision is done, which may need the entry.
    mutating func forgetDecided() {
        while self.decided > EarshotLimits.decidedInvitations,
            let oldest = self.entries.elements.firstIndex(where: { $0.value.invitation.state != .pending })
        {
            self.entries.remove(at: oldest)
            self.decided -= 1
        }
    }

    /// Nothing will be decided any more: the calls that wait, with what they wait for.
    mutating func dismissWaiters() -> [(call: CallID, invitation: Invitation)] {
        var dismissed: [(CallID, Invitation)] = []
        for index in self.entries.values.indices {
            let entry = self.entries.values[index]
            dismissed += entry.waiters.map { ($0, entry.invitation) }
            self.entries.values[index].waiters = []
        }
        return dismissed
    }
}

extension Invitation {
    fileprivate mutating func decide(_ state: State, session: SessionID?, _ error: EarshotError?) {
        self.state = state
        self.sessionID = session
        self.error = error?.code
        self.errorMessage = error?.message
    }
}
