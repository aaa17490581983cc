import EarshotWire
import OrderedCollections

/// Every transfer of both directions that is not over, those of which the content is here, and the last ones that are over; what is remembered
/// of others whose rows are gone; and what of them is on its way to the disk.
struct TransferTable: Sendable {
    private var records = PeerTable<ResourceID, TransferRecord>()
    /// Whose list of entries is received.
    private var lists = TreeListTurns()
    /// How transfers of peers' present sessions and groups ended whose rows are gone.
    private var ended: [PeerID: EndedTransfers] = [:]
    /// The transfers of each share, in the order in which they were asked for.
    private var shares: OrderedDictionary<ShareID, OrderedSet<ResourceID>> = [:]
    private var commits: [CommitID: TransferCommit] = [:]

    subscript(id: ResourceID) -> TransferRecord? { self.records[id] }

    /// The oldest first. Costs as much as there are: for listing.
    var all: [TransferRecord] { self.records.values }

    /// Those of one kind, the oldest first.
    func ids(_ facet: TransferRecord.Facets) -> [ResourceID] { self.records.ids(facet) }
    func ids(of peer: PeerID, _ facet: TransferRecord.Facets) -> [ResourceID] { self.records.ids(of: peer, facet) }
    func count(_ facet: TransferRecord.Facets) -> Int { self.records.count(facet) }
    func count(of peer: PeerID, _ facet: TransferRecord.Facets) -> Int { self.records.count(of: peer, facet) }

    // MARK: Transfers

    mutating func put(_ record: TransferRecord) {
        self.records[record.row.id] = record
        if let share = record.row.shareID { self.shares[share, default: []].append(record.row.id) }
    }

    mutating func remove(_ id: ResourceID) {
        if let share = self.records[id]?.row.shareID {
            self.shares[share]?.remove(id)
            if self.shares[share]?.isEmpty == true { self.shares[share] = nil }
        }
        self.records[id] = nil
    }

    /// Changes one, where there is such a one.
    mutating func change<Result>(_ id: ResourceID, _ body: (inout TransferRecord) -> Result) -> Result? {
        guard var record = self.records[id] else { return nil }
        let result = body(&record)
        self.records[id] = record
        return result
    }

    /// Which finished one is not listed any longer, after one of that peer's has ended.
    mutating func surplus(endedBy peer: PeerID) -> ResourceID? {
        self.records.surplus(beyond: EarshotLimits.finishedTransfers, endedBy: peer)
    }

    // MARK: Shares

    /// The transfers of a share that are listed, in the order in which they were asked for.
    func transfers(of share: ShareID) -> [TransferRecord] { (self.shares[share] ?? []).compactMap { self.records[$0] } }

    // MARK: Lists of entries

    /// Whether a directory's list may come now.
    mutating func beginList(_ id: ResourceID, of peer: PeerID) -> Bool { self.lists.begin(id, of: peer) }

    /// A directory's list takes little memory from now on, or its transfer has stopped; gives which one comes next.
    mutating func endList(_ id: ResourceID) -> ResourceID? { self.lists.end(id) }

    // MARK: What is remembered

    func ended(_ id: ResourceID, of peer: PeerID) -> EndedTransfer? { self.ended[peer]?[id] }

    /// Whosever it was.
    func ended(_ id: ResourceID) -> EndedTransfer? {
        self.ended.values.lazy.compactMap { $0[id] }.first  // order does not show: no two peers have one of the same id
    }

    func endedCount(of peer: PeerID) -> Int { self.ended[peer]?.count ?? 0 }

    /// Of how many peers something is remembered.
    var endedPeers: Int { self.ended.count }

    mutating func remember(_ end: EndedTransfer) { self.ended[end.peerID, default: EndedTransfers()].remember(end) }

    mutating func forgetEnded(of peer: PeerID) { self.ended[peer] = nil }

    // MARK: On their way to the disk

    var commitCount: Int { self.commits.count }

    mutating func begin(_ commit: TransferCommit, as id: CommitID) { self.commits[id] = commit }

    mutating func end(_ id: CommitID) -> TransferCommit? { self.commits.removeValue(forKey: id) }
}

/// What depends on rows of transfers being on disk.
enum TransferCommit: Sendable {
    /// These are queued.
    case queued([TransferRecord], CallID)
    /// The receiver takes its source as it is now.
    case adopted(ResourceID, on: LinkID)
    /// It is whole, and may be put where it belongs; its row as it will be then.
    case received(Resource)
    /// Where it is now.
    case placed(Resource)
    /// It cannot be put where it belongs, and fails.
    case misplaced(ResourceID, TransferFailure)
    /// It had ended before it was kept.
    case undone(ResourceID)
    /// Its content is to go.
    case dropped(ResourceID, CallID)
    /// Its row is to go, and with it the content in the spool, where there is any.
    case removed(Resource, hasContent: Bool, CallID)
    /// The rows of a share are to go.
    case removedShare([Resource], CallID)
    /// They are over, which was written right before.
    case ended([Resource], EndingCall?)

    /// Who has ended it, and hears so once a start would not begin it again.
    enum EndingCall: Sendable {
        case transfer(CallID)
        case share(CallID)
    }
}
