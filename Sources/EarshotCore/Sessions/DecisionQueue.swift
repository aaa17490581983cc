import DequeModule
import EarshotWire

/// A change of what is kept of peers and sessions. What it writes is worked out only when its turn in the queue comes, from the state at
/// that time; memory is changed once it is on disk.
enum Decision: Sendable, Hashable {
    /// A person's decision about a peer; `answering` also says what its caller is told.
    case trust(TrustRequest, Caller)
    case leave(SessionID, with: PeerID, CallID)
    /// A person says that the digits differ.
    case mismatch(PeerID, CallID)
    /// A person accepts a peer's invitation, or sends the peer something; `always` trusts it from now on.
    case accept(InvitationID, of: PeerID, always: Bool, Acceptor)
    /// The settings accept what the peer asks.
    case acceptBySettings(PeerID)
    /// Write a peer, and its session where asked, as memory has them when its turn comes: for facts that no decision is about (a proven
    /// key), and for sessions that have begun or ended in memory already.
    case keep(PeerID, andSession: Bool, KeepReason)
    /// A group, with its records.
    case group(GroupDecision)

    /// What a caller is told of a decision about trust: the peer, or the invitation that was answered so.
    enum Caller: Sendable, Hashable {
        case peer(CallID)
        case invitation(InvitationID, CallID)
    }

    /// By whose wish an invitation is accepted.
    enum Acceptor: Sendable, Hashable {
        case person(CallID)
        /// Something is sent to the peer, which would invite it otherwise.
        case sender
        case settings
    }

    /// What is to be done once it is on disk.
    enum KeepReason: Sendable, Hashable {
        case none
        /// The invitation had ended by the time its acceptance was on disk: it was reported as failed, so the acceptance is undone.
        case undo(Invitation, Acceptor)
        /// A peer has accepted an invitation of this side's.
        case joined(InvitationID, SessionID, wasDecided: Bool)
    }
}

/// What a person decides about a peer.
struct TrustRequest: Sendable, Hashable {
    let peer: PeerID
    let trust: Trust
    let until: WallTime?
    /// As it was named.
    let name: String
}

/// Decisions on their way to the disk: one at a time, in their order, so that of two neither undoes the other.
struct DecisionQueue: Sendable {
    struct Entry: Sendable {
        let decision: Decision
        /// What the peer is charged that has caused it.
        let hold: HoldID?
    }

    /// The one that is being written.
    struct UnderWay: Sendable {
        let id: CommitID
        let entry: Entry
        let outcome: DecisionOutcome
        /// The peer as it is written.
        let written: StoredPeer?
        /// Whose session goes with it.
        let ending: PeerID?
    }

    private var waiting: Deque<Entry> = []
    private(set) var underWay: UnderWay?

    /// How many are not on disk yet.
    var count: Int { self.waiting.count + (self.underWay == nil ? 0 : 1) }

    /// Whether the same already waits for its turn.
    func contains(_ decision: Decision) -> Bool { self.waiting.contains { $0.decision == decision } }

    /// Whether it waits for its turn, or is being written.
    func holds(_ decision: Decision) -> Bool { self.contains(decision) || self.underWay?.entry.decision == decision }

    mutating func append(_ decision: Decision, hold: HoldID?) { self.waiting.append(Entry(decision: decision, hold: hold)) }

    /// The next one, unless one is being written.
    mutating func next() -> Entry? { self.underWay == nil ? self.waiting.popFirst() : nil }

    mutating func begin(_ entry: Entry, _ outcome: DecisionOutcome, writing operations: [StoreOperation], as id: CommitID) {
        let written = operations.lazy.compactMap { if case .putPeer(let peer) = $0 { peer } else { nil } }.first
        let ending = operations.lazy.compactMap { if case .removeSession(let peer) = $0 { peer } else { nil } }.first
        self.underWay = UnderWay(id: id, entry: entry, outcome: outcome, written: written, ending: ending)
    }

    /// It is written, or is not to be; `nil` where that one is not under way.
    mutating func end(_ id: CommitID) -> UnderWay? {
        guard self.underWay?.id == id else { return nil }
        defer { self.underWay = nil }
        return self.underWay
    }
}

/// How memory is changed once a decision is on disk.
enum DecisionOutcome: Sendable {
    case trust(TrustChange)
    case mismatch(PeerID)
    /// Of this invitation; the session itself is the ``SessionState/agreement`` of its peer.
    case agreement(Invitation)
    case kept
    case group(GroupOutcome)
}
