import EarshotWire
import OrderedCollections

/// Invitations of both directions, in the order of their creation: the pending ones, and the last that were decided.
struct InvitationTable: Sendable {
    struct Entry: Sendable {
        fileprivate(set) var invitation: Invitation
        /// The deadline of an outgoing invitation, by the monotonic clock.
        fileprivate(set) var deadline: MonotonicInstant?
        /// The connection on which an outgoing invitation was last sent.
        fileprivate(set) var sentOn: LinkID?
        /// The number of the seat that an invitation to a group gives there.
        fileprivate(set) var seatNumber: UInt32 = 0
        /// Whether the peer has neither answered it there nor received its withdrawal. Until then the connection carries no other
        /// invitation.
        fileprivate(set) var isUnanswered = false
        /// The connection on which an incoming invitation last came.
        fileprivate(set) var cameOn: LinkID?
        /// Whether its inviter is away, with some time left to return.
        fileprivate(set) var isInviterAbsent = false
        /// Whether it has ended because its inviter was gone, without a user's decision. If it is sent again, it counts as a new one.
        fileprivate(set) var hasLapsed = false
        /// Whether a decision about it is being written: another decision comes too late.
        fileprivate(set) var isDeciding = false
        /// The content of an incoming invitation to a group.
        fileprivate(set) var groupInvite: GroupInvite?
        /// The calls that wait for its end.
        fileprivate(set) var waiters: [CallID] = []

        /// Whether a pending invitation to a group was answered on this connection with a seat that other members vouch for. Their records
        /// have yet to show that.
        func isAnsweredAsMember(on link: LinkID?) -> Bool {
            self.invitation.direction == .outgoing && self.invitation.group != nil && link != nil && self.sentOn == link
                && !self.isUnanswered
        }

        /// Whether it is an invitation to a group that was sent on this connection, and that the peer has not answered.
        fileprivate func isUnanswered(on link: LinkID?) -> Bool {
            self.isUnanswered && link != nil && self.sentOn == link && self.invitation.group != nil
        }
    }

    /// The key of a pending invitation. A peer has at most one to a session and one to a group in each direction.
    private struct Place: Hashable, Sendable {
        let peer: PeerID
        let direction: Direction
        let isToGroup: Bool
    }

    private var entries: OrderedDictionary<InvitationID, Entry> = [:]
    private var pending: [Place: InvitationID] = [:]
    private var decided = 0

    subscript(id: InvitationID) -> Entry? { self.entries[id] }

    /// Returns invitations in the order of their creation: the pending ones, or with `all` the decided ones too.
    func list(all: Bool) -> [Invitation] { self.entries.values.map(\.invitation).filter { all || $0.state == .pending } }

    var pendingCount: Int { self.entries.count - self.decided }

    /// Returns the pending invitation to a session.
    func pending(with peer: PeerID, _ direction: Direction) -> InvitationID? {
        self.pending[Place(peer: peer, direction: direction, isToGroup: false)]
    }

    /// Returns the pending invitation to a group.
    func pendingGroup(with peer: PeerID, _ direction: Direction) -> InvitationID? {
        self.pending[Place(peer: peer, direction: direction, isToGroup: true)]
    }

    /// Returns the pending invitations of both kinds.
    func allPending(with peer: PeerID, _ direction: Direction) -> [InvitationID] {
        [self.pending(with: peer, direction), self.pendingGroup(with: peer, direction)].compactMap(\.self)
    }

    /// Returns the pending invitations to a group, in the order of their creation.
    func pendingIDs(to group: GroupID) -> [InvitationID] {
        self.entries.values.filter { $0.invitation.state == .pending && $0.invitation.group?.id == group }.map(\.invitation.id)
    }

    private func place(of invitation: Invitation) -> Place {
        Place(peer: invitation.peerID, direction: invitation.direction, isToGroup: invitation.group != nil)
    }

    /// Whether an invitation that the peer has sent on this connection timed out here before the peer's withdrawal arrived.
    func isWithdrawalDue(from peer: PeerID, on link: LinkID) -> Bool {
        self.entries.values.contains {
            $0.cameOn == link && $0.invitation.state == .timedOut && $0.invitation.peerID == peer && $0.invitation.group == nil
        }
    }

    /// Adds an invitation, replacing any other with its id. Only the last decided ones are kept.
    mutating func add(_ invitation: Invitation, until deadline: MonotonicInstant? = nil) {
        if let old = self.entries.removeValue(forKey: invitation.id), old.invitation.state != .pending { self.decided -= 1 }
        self.entries[invitation.id] = Entry(invitation: invitation, deadline: deadline)
        guard invitation.state == .pending else {
            self.decided += 1
            return self.forgetDecided()
        }
        self.pending[self.place(of: invitation)] = invitation.id
    }

    /// Stores the content of an incoming invitation to a group, and the connection on which it came.
    mutating func keep(_ invite: GroupInvite, on link: LinkID) {
        self.entries[invite.id]?.groupInvite = invite
        self.entries[invite.id]?.cameOn = link
    }

    /// Returns how long a pending outgoing invitation still waits for its answer, in milliseconds, as it is sent to the peer.
    func millisecondsLeft(of id: InvitationID, at now: MonotonicInstant) -> UInt32 {
        let left = self.entries[id]?.deadline.map { ($0 - now).wholeMilliseconds } ?? 0
        return UInt32(clamping: min(max(1, left), Int64(WireLimits.invitationTimeoutMilliseconds)))
    }

    mutating func sent(_ id: InvitationID, on link: LinkID, seatNumber: UInt32 = 0) {
        self.entries[id]?.seatNumber = seatNumber
        self.entries[id]?.sentOn = link
        self.entries[id]?.isUnanswered = true
    }

    /// Records that an outgoing invitation to a group was answered on a connection, or withdrawn there.
    mutating func answered(_ id: InvitationID, on link: LinkID?) {
        if self.entries[id]?.sentOn == link { self.entries[id]?.isUnanswered = false }
    }

    /// Whether an invitation to a group is unanswered on a connection although it is decided here, because the peer was found to be a
    /// member already.
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

    /// Gives a pending invitation its final state. Returns it with the calls that waited for it.
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

    /// Drops the oldest decided invitations beyond the limit. Must run after all consequences of a decision, because they may need the
    /// entry.
    mutating func forgetDecided() {
        while self.decided > EarshotLimits.decidedInvitations,
            let oldest = self.entries.elements.firstIndex(where: { $0.value.invitation.state != .pending })
        {
            self.entries.remove(at: oldest)
            self.decided -= 1
        }
    }

    /// Removes all waiting calls, because nothing will be decided any more. Returns them with the invitations that they wait for.
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
        if let offer = self.offer { self.offer = Array(offer.prefix(EarshotLimits.decidedOfferFiles)) }
    }
}
