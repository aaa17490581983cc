import DequeModule
import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore
import OrderedCollections

/// The bytes of a resource on disk, reduced to a stamp and their number. The content of one source in one state has one stamp, and content
/// that mixes several has none of them.
struct Content: Hashable {
    static let mixed: UInt64 = 0
    var stamp: UInt64
    var count: UInt64

    /// A substitute for a digest, as long as the digest of a resource's beginning.
    var digest: [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeInteger(self.stamp)
        buffer.writeInteger(self.count)
        return Array(buffer.readableBytesView)
    }

    /// The attributes of a file with this content.
    var attributes: FileAttributes {
        FileAttributes(
            isExecutable: self.stamp % 2 == 0, hasHoles: self.stamp % 3 == 0, seconds: Int64(clamping: self.stamp), nanoseconds: 0)
    }

    mutating func append(_ bytes: UInt64, of stamp: UInt64) {
        if self.count > 0, bytes > 0, self.stamp != stamp { self.stamp = Self.mixed } else if self.count == 0 { self.stamp = stamp }
        self.count += bytes
    }
}

/// The mover of one resource's bytes (`UploadJob`, `DownloadJob`). It performs orders one by one, each of which takes time.
struct TransferMover {
    enum Order {
        case command(TransferCommand)
        /// Bytes that arrived on the control connection.
        case write(Content, at: UInt64)
    }

    let row: Resource
    let source: StoredTransfer.Source
    var orders: Deque<Order> = []
    var isBusy = false
    /// Whether it is to stop, and then keep its content.
    var isStopped = false
    var isKept = false
    var hasFailed = false
    /// The attributes that a download's sender has given for a file.
    var attributes: FileAttributes?
    /// The content that an upload reads.
    var content: Content?
    var position: UInt64 = 0
    /// The body of a device's upload that it receives.
    var body: DeviceBody?
    /// The data connection that it receives from.
    var data: Int?
}

/// The transfer state of one machine's shell (`Node+TransferMovers.swift`).
struct TransferSide {
    /// The movers by number, so that a stopping mover and its successor are distinct.
    var movers: OrderedDictionary<Int, TransferMover> = [:]
    var current: OrderedDictionary<ResourceID, Int> = [:]
    var started = 0
    /// The resources whose bytes callers supply.
    var bodies: OrderedSet<ResourceID> = []
}

/// The resources on the disk of one machine: rows, the spool, sources, and the directory of received files. It survives the machine's
/// stops.
struct Shelf {
    /// The store's rows, in the order of their creation.
    private(set) var rows: OrderedDictionary<ResourceID, Resource> = [:]
    private(set) var going: OrderedDictionary<ResourceID, StoredTransfer> = [:]
    private(set) var ended: [EndedTransfer] = []

    /// The spool: unfinished and complete incoming resources.
    var partial: OrderedDictionary<ResourceID, (size: UInt64, content: Content)> = [:]
    var complete: OrderedDictionary<ResourceID, Content> = [:]
    /// The directory of received files.
    var placed: OrderedDictionary<ResourceID, Content> = [:]
    /// The sources of outgoing resources in their present state, and the content that was sent last.
    var sources: OrderedDictionary<ResourceID, Content> = [:]
    var sent: OrderedDictionary<ResourceID, Content> = [:]
    /// The attributes of bodies, as given by callers.
    var bodies: OrderedDictionary<ResourceID, FileAttributes> = [:]
    /// All contents that were ever sent.
    var everSent: OrderedDictionary<ResourceID, [Content]> = [:]
    /// The contents that have been complete here, with their rows on disk.
    var received: OrderedDictionary<ResourceID, Content> = [:]

    mutating func apply(_ operation: StoreOperation) {
        switch operation {
        case .putResource(let row):
            self.rows[row.id] = row
            if row.direction == .incoming, row.state == .completed, let content = self.complete[row.id] ?? self.placed[row.id] {
                self.received[row.id] = content
            }
        case .removeResource(let id):
            self.rows.removeValue(forKey: id)
            self.going.removeValue(forKey: id)
        case .putTransfer(let stored): if self.rows[stored.id] != nil { self.going[stored.id] = stored }
        case .removeTransfer(let id): self.going.removeValue(forKey: id)
        case .putEndedTransfer(let end): self.ended.append(end)
        case .putPeer, .removePeer, .putSession, .removeSession: break
        case .putGroup, .removeGroup, .putGroupRecord, .removeGroupRecord: break
        }
    }

    mutating func endSession(with peer: PeerID) { self.ended.removeAll { $0.peerID == peer } }

    /// Returns the transfers that a machine starts from. Complete content without a record counts as unfinished.
    mutating func load() -> [LoadedTransfer] {
        for (id, row) in self.rows where row.direction == .incoming && !row.state.isFinal && self.going[id]?.isTaken == true {
            if let content = self.complete.removeValue(forKey: id) { self.partial[id] = (row.size, content) }
        }
        return self.rows.values.map { row in
            let held = self.going[row.id]?.isTaken == true ? self.partial[row.id]?.content.count : nil
            return LoadedTransfer(row: row, stored: self.going[row.id], held: held)
        }
    }

    /// Removes content that belongs to no transfer.
    mutating func sweep(keeping complete: [ResourceID], _ unfinished: [ResourceID]) {
        for id in Array(self.complete.keys) where !complete.contains(id) { self.complete.removeValue(forKey: id) }
        for id in Array(self.partial.keys) where !unfinished.contains(id) { self.partial.removeValue(forKey: id) }
    }
}

extension TransferChange {
    /// The operations of the change, as the store performs them.
    var operations: [StoreOperation] {
        switch self {
        case .put(let row, _): [.putResource(row)]
        case .putTransfer(let stored): [.putTransfer(stored)]
        case .removeTransfer(let id): [.removeTransfer(id)]
        case .remove(let id, let ended): [.removeResource(id)] + (ended.map { [.putEndedTransfer($0)] } ?? [])
        }
    }
}

extension StoreOperation {
    /// The resource whose row it changes.
    var resource: ResourceID? {
        switch self {
        case .putResource(let row): row.id
        case .putTransfer(let stored): stored.id
        case .removeResource(let id), .removeTransfer(let id): id
        case .putEndedTransfer(let end): end.id
        case .putPeer, .removePeer, .putSession, .removeSession, .putGroup, .removeGroup, .putGroupRecord, .removeGroupRecord: nil
        }
    }
}
