import DequeModule
import EarshotWire

/// A change of the stored state of peers, sessions and groups. Its writes are computed when it reaches the head of the queue, from the
/// state at that time. Memory is changed once they are on disk.
enum Decision: Sendable, Hashable {
    /// A user's decision about a peer. `Caller` says which answer the caller gets.
    case trust(TrustRequest, Caller)
    /// The alias that a user gives to a peer, or removes. `name` is the one by which the caller named the peer.
    case alias(DisplayName?, of: PeerID, name: String, CallID)
    case leave(SessionID, with: PeerID, CallID)
    /// The user reports that the digits differ.
    case mismatch(PeerID, CallID)
    /// The user accepts a peer's invitation, or sends the peer something. With `always`, the peer is trusted from then on.
    case accept(InvitationID, of: PeerID, always: Bool, Acceptor)
    /// The settings accept the peer's invitation.
    case acceptBySettings(PeerID)
    /// Writes a peer, and its session if requested, as they are in memory when the write begins. Used for facts that need no decision (a
    /// proven key), and for sessions that have already begun or ended in memory.
    case keep(PeerID, andSession: Bool, KeepReason)
    /// A decision about a group, with its records.
    case group(GroupDecision)

    /// The answer for the caller of a decision about trust: the peer, the invitation that was answered with it, or the device's offer that
    /// was accepted before.
    enum Caller: Sendable, Hashable {
        case peer(CallID)
        case invitation(InvitationID, CallID)
        case offer(Invitation, CallID)
    }

    /// The origin of an acceptance.
    enum Acceptor: Sendable, Hashable {
        case person(CallID)
        /// A caller sends something to the peer, for which the peer would otherwise be invited.
        case sender
        case settings
    }

    /// The step that follows the write.
    enum KeepReason: Sendable, Hashable {
        case none
        /// The invitation had ended before its acceptance was on disk. It was reported as failed, so the acceptance is undone.
        case undo(Invitation, Acceptor)
        /// A peer has accepted an invitation of this side.
        case joined(InvitationID, SessionID, wasDecided: Bool)
    }
}

/// A user's decision about a peer.
struct TrustRequest: Sendable, Hashable {
    let peer: PeerID
    let trust: Trust
    let until: WallTime?
    /// The name by which the caller named the peer.
    let name: String
}

/// The queue of decisions. They are written one at a time and in order, so that none undoes another.
struct DecisionQueue: Sendable {
    struct Entry: Sendable {
        let decision: Decision
        /// The charge of the peer that has caused the decision.
        let hold: HoldID?
    }

    /// The decision that is being written.
    struct UnderWay: Sendable {
        let id: CommitID
        let entry: Entry
        let outcome: DecisionOutcome
        /// The peer as it is being written.
        let written: StoredPeer?
        /// The peer whose session is removed by this decision.
        let ending: PeerID?
    }

    private var waiting: Deque<Entry> = []
    private(set) var underWay: UnderWay?

    /// The number of decisions that are not on disk yet.
    var count: Int { self.waiting.count + (self.underWay == nil ? 0 : 1) }

    /// Whether an equal decision already waits in the queue.
    func contains(_ decision: Decision) -> Bool { self.waiting.contains { $0.decision == decision } }

    /// Whether a decision waits in the queue, or is being written.
    func holds(_ decision: Decision) -> Bool { self.contains(decision) || self.underWay?.entry.decision == decision }

    mutating func append(_ decision: Decision, hold: HoldID?) { self.waiting.append(Entry(decision: decision, hold: hold)) }

    /// Takes the next decision, unless one is being written.
    mutating func next() -> Entry? { self.underWay == nil ? self.waiting.popFirst() : nil }

    mutating func begin(_ entry: Entry, _ outcome: DecisionOutcome, writing operations: [StoreOperation], as id: CommitID) {
        let written = operations.lazy.compactMap { if case .putPeer(let peer) = $0 { peer } else { nil } }.first
        let ending = operations.lazy.compactMap { if case .removeSession(let peer) = $0 { peer } else { nil } }.first
        self.underWay = UnderWay(id: id, entry: entry, outcome: outcome, written: written, ending: ending)
    }

    /// Ends the decision that is being written, whether it was written or not; `nil` if that commit is not under way.
    mutating func end(_ id: CommitID) -> UnderWay? {
        guard self.underWay?.id == id else { return nil }
        defer { self.underWay = nil }
        return self.underWay
    }
}

/// The change of memory once a decision is on disk.
enum DecisionOutcome: Sendable {
    case trust(TrustChange)
    case alias(DisplayName?, of: PeerID)
    case mismatch(PeerID)
    /// The agreement for this invitation. The session itself is in the ``SessionState/agreement`` of its peer.
    case agreement(Invitation)
    case kept
    case group(GroupOutcome)
    /// The row of a LocalSend device.
    case device(StoredPeer)
}
