import DequeModule
import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore
import OrderedCollections

/// Bytes of a resource on a disk, of which there is nothing but whose they are and how many: those of one source in one state have one stamp,
/// and what is put together from several is none of them.
struct Content: Hashable {
    static let mixed: UInt64 = 0
    var stamp: UInt64
    var count: UInt64

    /// In the place of a digest, and as long as one of a resource's beginning.
    var digest: [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeInteger(self.stamp)
        buffer.writeInteger(self.count)
        return Array(buffer.readableBytesView)
    }

    /// What a file with this content has beside it.
    var attributes: FileAttributes {
        FileAttributes(
            isExecutable: self.stamp % 2 == 0, hasHoles: self.stamp % 3 == 0, seconds: Int64(clamping: self.stamp), nanoseconds: 0)
    }

    mutating func append(_ bytes: UInt64, of stamp: UInt64) {
        if self.count > 0, bytes > 0, self.stamp != stamp { self.stamp = Self.mixed } else if self.count == 0 { self.stamp = stamp }
        self.count += bytes
    }
}

/// What moves one resource's bytes (`UploadJob`, `DownloadJob`): one thing after the other, each of which takes its time.
struct TransferMover {
    enum Order {
        case command(TransferCommand)
        /// Bytes that came over the control connection.
        case write(Content, at: UInt64)
    }

    let row: Resource
    let source: StoredTransfer.Source
    var orders: Deque<Order> = []
    var isBusy = false
    /// Whether it is to do nothing further, and to keep what is here then.
    var isStopped = false
    var isKept = false
    var hasFailed = false
    /// What a download's sender has told of a file.
    var attributes: FileAttributes?
    /// What an upload reads.
    var content: Content?
    var position: UInt64 = 0
    /// The data connection that it receives from.
    var data: Int?
}

/// What one machine's shell has of resources (`Node+TransferMovers.swift`).
struct TransferSide {
    /// By numbers, so that one that has been told to stop and its successor are two.
    var movers: OrderedDictionary<Int, TransferMover> = [:]
    var current: OrderedDictionary<ResourceID, Int> = [:]
    var started = 0
    /// Resources whose bytes callers bring.
    var bodies: OrderedSet<ResourceID> = []
}

/// What one machine has on its disk of resources: rows, the spool, sources, and the directory of received files. It outlives the machine's
/// stops.
struct Shelf {
    /// The store's rows, in the order in which they were made.
    private(set) var rows: OrderedDictionary<ResourceID, Resource> = [:]
    private(set) var going: OrderedDictionary<ResourceID, StoredTransfer> = [:]
    private(set) var ended: [EndedTransfer] = []

    /// The spool: unfinished and complete ones that came in.
    var partial: OrderedDictionary<ResourceID, (size: UInt64, content: Content)> = [:]
    var complete: OrderedDictionary<ResourceID, Content> = [:]
    /// The directory of received files.
    var placed: OrderedDictionary<ResourceID, Content> = [:]
    /// What persons here have asked to be sent, as it is now; and what was sent of it last.
    var sources: OrderedDictionary<ResourceID, Content> = [:]
    var sent: OrderedDictionary<ResourceID, Content> = [:]
    /// What was said of bodies when they were given.
    var bodies: OrderedDictionary<ResourceID, FileAttributes> = [:]
    /// All that was ever sent of it.
    var everSent: OrderedDictionary<ResourceID, [Content]> = [:]
    /// What has been here whole, with its row on disk.
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

    /// What a machine starts from. Whole content of which nothing was recorded counts as unfinished.
    mutating func load() -> [LoadedTransfer] {
        for (id, row) in self.rows where row.direction == .incoming && !row.state.isFinal && self.going[id]?.isTaken == true {
            if let content = self.complete.removeValue(forKey: id) { self.partial[id] = (row.size, content) }
        }
        return self.rows.values.map { row in
            let held = self.going[row.id]?.isTaken == true ? self.partial[row.id]?.content.count : nil
            return LoadedTransfer(row: row, stored: self.going[row.id], held: held)
        }
    }

    /// What belongs to nothing goes.
    mutating func sweep(keeping complete: [ResourceID], _ unfinished: [ResourceID]) {
        for id in Array(self.complete.keys) where !complete.contains(id) { self.complete.removeValue(forKey: id) }
        for id in Array(self.partial.keys) where !unfinished.contains(id) { self.partial.removeValue(forKey: id) }
    }
}

extension TransferChange {
    /// As the store does it.
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
    /// Of which resource it changes the row.
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
