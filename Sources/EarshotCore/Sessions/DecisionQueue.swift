import DequeModule
import EarshotWire

/// Something that changes what is kept of peers and sessions. What it is exactly is said when its turn comes, by what is there then; memory
/// follows when it is on disk.
enum Decision: Sendable, Hashable {
    /// A person's decision about a peer; `answering` also says what its caller is told.
    case trust(TrustRequest, Caller)
    case leave(SessionID, CallID)
    /// A person says that the digits differ.
    case mismatch(PeerID, CallID)
    /// A person accepts a peer's invitation, or sends the peer something; `always` trusts it from now on.
    case accept(InvitationID, of: PeerID, always: Bool, Acceptor)
    /// The settings accept what the peer asks.
    case acceptBySettings(PeerID)
    /// Have a peer, and its session where asked, written as memory has them when its turn comes: for what is noted in passing, and for what
    /// has begun or ended in memory already.
    case keep(PeerID, andSession: Bool, KeepReason)

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

    /// What depends on its being kept.
    enum KeepReason: Sendable, Hashable {
        case none
        /// An invitation was over when its acceptance came to disk, and what is told to have failed is undone.
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
    }

    private var waiting: Deque<Entry> = []
    private(set) var underWay: UnderWay?

    /// How many are not on disk yet.
    var count: Int { self.waiting.count + (self.underWay == nil ? 0 : 1) }

    /// Whether the same already waits for its turn.
    func contains(_ decision: Decision) -> Bool { self.waiting.contains { $0.decision == decision } }

    mutating func append(_ decision: Decision, hold: HoldID?) { self.waiting.append(Entry(decision: decision, hold: hold)) }

    /// The next one, unless one is being written.
    mutating func next() -> Entry? { self.underWay == nil ? self.waiting.popFirst() : nil }

    mutating func begin(_ entry: Entry, _ outcome: DecisionOutcome, writing operations: [StoreOperation], as id: CommitID) {
        let written = operations.lazy.compactMap { if case .putPeer(let peer) = $0 { peer } else { nil } }.first
        self.underWay = UnderWay(id: id, entry: entry, outcome: outcome, written: written)
    }

    /// It is written, or is not to be; `nil` where that one is not under way.
    mutating func end(_ id: CommitID) -> UnderWay? {
        guard self.underWay?.id == id else { return nil }
        defer { self.underWay = nil }
        return self.underWay
    }
}

/// What a decision comes to when its turn has come.
enum DecisionOutcome: Sendable {
    case trust(TrustChange)
    case leave(PeerID)
    case mismatch(PeerID)
    /// Of the invitation, whose agreement stands with its peer.
    case agreement(Invitation)
    case kept
}
