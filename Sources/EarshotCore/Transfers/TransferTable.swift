import EarshotWire
import OrderedCollections

/// Every transfer of both directions that is not over or has content here, and the last ones that are over. Also the remembered ends of
/// transfers whose rows are gone, and the commits that are under way.
struct TransferTable: Sendable {
    private var records = PeerTable<ResourceID, TransferRecord>()
    /// The directories whose lists of entries are being received.
    private var lists = TreeListTurns()
    /// The ends of transfers whose rows are gone, for peers' present sessions and groups.
    private var ended: [PeerID: EndedTransfers] = [:]
    /// The transfers of each share, in the order of the requests.
    private var shares: OrderedDictionary<ShareID, OrderedSet<ResourceID>> = [:]
    private var commits: [CommitID: TransferCommit] = [:]
    /// Whether a transfer has become active or inactive since the limits on bandwidth were divided.
    private var hasActivityChanged = false
    /// Whether any transfer has had a limit of its own.
    private(set) var hasLimits = false

    subscript(id: ResourceID) -> TransferRecord? { self.records[id] }

    /// All transfers, oldest first. The cost is linear in their number; meant for listing.
    var all: [TransferRecord] { self.records.values }

    /// Returns the ids of the transfers with a facet, oldest first.
    func ids(_ facet: TransferRecord.Facets) -> [ResourceID] { self.records.ids(facet) }
    func ids(of peer: PeerID, _ facet: TransferRecord.Facets) -> [ResourceID] { self.records.ids(of: peer, facet) }
    func count(_ facet: TransferRecord.Facets) -> Int { self.records.count(facet) }
    func count(of peer: PeerID, _ facet: TransferRecord.Facets) -> Int { self.records.count(of: peer, facet) }

    // MARK: Transfers

    mutating func put(_ record: TransferRecord) {
        self.records[record.row.id] = record
        if record.stored?.limit != nil { self.hasLimits = true }
        if let share = record.row.shareID { self.shares[share, default: []].append(record.row.id) }
    }

    mutating func remove(_ id: ResourceID) {
        if let share = self.records[id]?.row.shareID {
            self.shares[share]?.remove(id)
            if self.shares[share]?.isEmpty == true { self.shares[share] = nil }
        }
        self.records[id] = nil
    }

    /// Changes a transfer, if it exists.
    @discardableResult
    mutating func change<Result>(_ id: ResourceID, _ body: (inout TransferRecord) -> Result) -> Result? {
        guard var record = self.records[id] else { return nil }
        let wasActive = record.isActive
        let result = body(&record)
        if record.isActive != wasActive { self.hasActivityChanged = true }
        self.records[id] = record
        return result
    }

    /// Returns whether a transfer has become active or inactive since the last call.
    mutating func takeActivityChange() -> Bool {
        defer { self.hasActivityChanged = false }
        return self.hasActivityChanged
    }

    /// Returns the finished transfer that is no longer to be listed, after one of that peer's has ended.
    mutating func surplus(endedBy peer: PeerID) -> ResourceID? {
        self.records.surplus(beyond: EarshotLimits.finishedTransfers, endedBy: peer)
    }

    // MARK: Shares

    /// Returns the listed transfers of a share, in the order of the requests.
    func transfers(of share: ShareID) -> [TransferRecord] { (self.shares[share] ?? []).compactMap { self.records[$0] } }

    // MARK: Lists of entries

    /// Whether the list of a directory may be received now.
    mutating func beginList(_ id: ResourceID, of peer: PeerID) -> Bool { self.lists.begin(id, of: peer) }

    /// Ends the turn of a directory whose list takes little memory from now on, or whose transfer has stopped. Returns the next directory.
    mutating func endList(_ id: ResourceID) -> ResourceID? { self.lists.end(id) }

    // MARK: Remembered ends

    func ended(_ id: ResourceID, of peer: PeerID) -> EndedTransfer? { self.ended[peer]?[id] }

    /// Returns the remembered end of a transfer of any peer.
    func ended(_ id: ResourceID) -> EndedTransfer? {
        self.ended.values.lazy.compactMap { $0[id] }.first  // order does not show: no two peers have one of the same id
    }

    func endedCount(of peer: PeerID) -> Int { self.ended[peer]?.count ?? 0 }

    /// The number of peers with remembered ends.
    var endedPeers: Int { self.ended.count }

    mutating func remember(_ end: EndedTransfer) { self.ended[end.peerID, default: EndedTransfers()].remember(end) }

    mutating func forgetEnded(of peer: PeerID) { self.ended[peer] = nil }

    // MARK: Commits under way

    var commitCount: Int { self.commits.count }

    mutating func begin(_ commit: TransferCommit, as id: CommitID) { self.commits[id] = commit }

    mutating func end(_ id: CommitID) -> TransferCommit? { self.commits.removeValue(forKey: id) }
}

/// A commit that a step of a transfer depends on.
enum TransferCommit: Sendable {
    /// The queued transfers are written.
    case queued([TransferRecord], CallID)
    /// The receiver accepts the changed source.
    case adopted(ResourceID, on: LinkID)
    /// The resource is whole and may be put in its place; its row as it will be then.
    case received(Resource)
    /// The resource is in its place.
    case placed(Resource)
    /// The resource cannot be put in its place, and fails.
    case misplaced(ResourceID, TransferFailure)
    /// The transfer had ended before its reception was written.
    case undone(ResourceID)
    /// The content is to be removed.
    case dropped(ResourceID, CallID)
    /// The row is to be removed, together with any content in the spool.
    case removed(Resource, hasContent: Bool, CallID)
    /// The rows of a share are to be removed.
    case removedShare([Resource], CallID)
    /// The transfers are over; their rows were written right before.
    case ended([Resource], EndingCall?)

    /// The call that ended the transfers. It is answered once a start would not resume them.
    enum EndingCall: Sendable {
        case transfer(CallID)
        case share(CallID)
    }
}
