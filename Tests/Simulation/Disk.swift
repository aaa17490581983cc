import EarshotCore
import EarshotWire
import OrderedCollections

/// The committed state of one machine: the store's tables of peers and sessions, as kept by `Store+State.swift`. It survives the machine's
/// stops; uncommitted operations are lost.
struct Disk: Sendable {
    /// The fate of the next transactions.
    enum Mode: Int, Sendable {
        case slow, failing, full
    }

    private(set) var peers: OrderedDictionary<PeerID, StoredPeer> = [:]
    private(set) var sessions: [StoredSession] = []
    private(set) var groups: OrderedDictionary<GroupID, StoredGroup> = [:]
    /// The groups at the time of the backup.
    private var backup: OrderedDictionary<GroupID, StoredGroup>?
    /// The groups with a failed write, until the write is retried.
    private(set) var unkeptGroups: OrderedSet<GroupID> = []
    var mode: Mode?
    /// The end of the mode.
    var modeEnd: Instant = .zero
    /// The uncommitted transactions in order; without an id if no caller waits for one.
    var pending: [(commit: CommitID?, operations: [StoreOperation])] = []
    /// The peers whose state in memory may be newer than on disk, until a failed write is retried: the core notes some facts without a
    /// decision.
    private(set) var unkeptPeers: OrderedSet<PeerID> = []
    private(set) var unkeptSessions: OrderedSet<PeerID> = []
    /// The sessions that transactions have ended, while the machine has not been told yet.
    private(set) var ended: OrderedDictionary<CommitID, [SessionID]> = [:]

    func session(with peer: PeerID) -> StoredSession? { self.sessions.first { $0.members.dropFirst().contains(peer) } }

    /// Returns the peers whose sessions end with these operations, also by replacement. The data of a session ends with it.
    func sessionsLeft(by operations: [StoreOperation]) -> [PeerID] {
        operations.compactMap { operation in
            switch operation {
            case .removeSession(let peer): return peer
            case .putSession(let session):
                guard let peer = session.members.last, let there = self.session(with: peer), there.id != session.id else { return nil }
                return peer
            case .putPeer, .removePeer, .putResource, .removeResource, .putTransfer, .removeTransfer, .putEndedTransfer: return nil
            case .putGroup, .removeGroup, .putGroupRecord, .removeGroupRecord: return nil
            }
        }
    }

    /// Commits all operations or none; returns the error if it failed.
    mutating func commit(_ operations: [StoreOperation], as commit: CommitID?) -> EarshotError? {
        let sessions = self.sessions.map(\.id)
        let error = self.apply(operations)
        let left = self.sessions.map(\.id)
        if let commit { self.ended[commit] = sessions.filter { !left.contains($0) } }
        for operation in operations {
            switch operation {
            case .putPeer(let peer): self.unkeptPeers.note(peer.id, error)
            case .removePeer(let peer): self.unkeptPeers.note(peer, error)
            case .removeSession(let peer): self.unkeptSessions.note(peer, error)
            case .putSession(let session): if let peer = session.members.last { self.unkeptSessions.note(peer, error) }
            case .putGroup(let group): self.unkeptGroups.note(group.id, error)
            case .removeGroup(let id), .putGroupRecord(_, let id), .removeGroupRecord(_, let id): self.unkeptGroups.note(id, error)
            case .putResource, .removeResource, .putTransfer, .removeTransfer, .putEndedTransfer: break
            }
        }
        return error
    }

    /// Records that the machine has been told of a commit.
    mutating func told(of commit: CommitID) { self.ended.removeValue(forKey: commit) }

    private mutating func apply(_ operations: [StoreOperation]) -> EarshotError? {
        switch self.mode {
        case .failing: return EarshotError(.storage, "the disk has failed")
        case .full: return EarshotError(.storage, "the disk is full")
        case .slow, nil: break
        }
        let (peers, sessions) = (self.peers, self.sessions)
        for operation in operations {
            switch operation {
            case .putPeer(let peer): self.peers[peer.id] = peer
            case .removePeer(let peer): self.peers.removeValue(forKey: peer)
            case .putSession(let session):
                let members = session.members.dropFirst()
                guard !self.sessions.contains(where: { $0.id == session.id && $0.members.dropFirst() != members }) else {
                    (self.peers, self.sessions) = (peers, sessions)
                    return EarshotError(.storage, "another peer has a session of that id")
                }
                self.sessions.removeAll { $0.members.dropFirst() == members }
                self.sessions.append(session)
            case .removeSession(let peer):
                self.sessions.removeAll { $0.members.dropFirst().contains(peer) }
                if self.peers[peer]?.isDecided == false { self.peers.removeValue(forKey: peer) }
            case .putGroup(let group):
                let there = self.groups[group.id]?.records ?? []
                self.groups[group.id] = StoredGroup(charter: group.charter, records: there, isOver: group.isOver)
                for record in group.records { self.put(record, of: group.id) }
            case .removeGroup(let id): self.groups.removeValue(forKey: id)
            case .putGroupRecord(let record, let id): self.put(record, of: id)
            case .removeGroupRecord(let hash, let id): self.groups[id]?.records.removeAll { $0.hash(in: id) == hash }
            case .putResource, .removeResource, .putTransfer, .removeTransfer, .putEndedTransfer: break
            }
        }
        return nil
    }

    private mutating func put(_ record: GroupRecord, of group: GroupID) {
        let hash = record.hash(in: group)
        self.groups[group]?.records.removeAll { $0.hash(in: group) == hash }
        self.groups[group]?.records.append(record)
    }

    /// Backs up the groups, unless there is a backup.
    mutating func backUp() -> Bool {
        guard self.backup == nil else { return false }
        self.backup = self.groups
        return true
    }

    /// Restores the backup of a machine that is off.
    mutating func restore() {
        if let backup = self.backup.take() { self.groups = backup }
    }

    /// Returns the names of a group, by all of its stored terms.
    func names(of group: GroupID) -> [String] {
        (self.groups[group]?.records ?? []).compactMap { if case .terms(let terms) = $0 { terms.name.description } else { nil } }
    }

    /// Returns the state that a machine starts from. Drops peers that no user has decided about and that have no session.
    mutating func load() -> (peers: [StoredPeer], sessions: [StoredSession], groups: [StoredGroup]) {
        for peer in Array(self.peers.values) where !peer.isDecided && self.session(with: peer.id) == nil {
            self.peers.removeValue(forKey: peer.id)
        }
        self.pending = []
        self.unkeptPeers = []
        self.unkeptSessions = []
        self.unkeptGroups = []
        self.ended = [:]
        let sessions = self.sessions.sorted { ($0.createdAt, $0.id.high) < ($1.createdAt, $1.id.high) }
        return (self.peers.values.sorted { $0.id < $1.id }, sessions, Array(self.groups.values))
    }
}

extension OrderedSet {
    fileprivate mutating func note(_ one: Element, _ error: EarshotError?) {
        if error == nil { self.remove(one) } else { self.append(one) }
    }
}
