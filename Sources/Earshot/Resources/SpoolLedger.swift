internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Synchronization

/// The accounting of the spool: complete content, and space reserved for each unfinished transfer.
///
/// A file reserves its space before its first byte. The space of a directory is known only with its manifest, on whatever thread writes
/// it. Its share is then raised or refused here, in one step with the check of all other shares. The quota, the share of one peer and the
/// reserve therefore hold for all transfers together. An interrupted transfer keeps the space of its received bytes.
final class SpoolLedger: Sendable {
    /// The final space of a transfer.
    struct Room {
        /// The size in bytes.
        let bytes: UInt64
        /// The number of entries of the file system.
        let entries: UInt64
    }

    /// The part of the reserved space that is already on disk, counted by the thread that writes.
    final class Spent: Sendable {
        let bytes = TransferCount()
        let entries = TransferCount()

        func count(_ room: Room) {
            self.bytes.value = room.bytes
            self.entries.value = room.entries
        }
    }

    fileprivate struct Share {
        var room: Room
        let spent: Spent
        /// The sending peer; `nil` for this node's own content.
        let peer: PeerID?

        var owedBytes: UInt64 { self.room.bytes - min(self.spent.bytes.value, self.room.bytes) }
        var owedEntries: UInt64 { self.room.entries - min(self.spent.entries.value, self.room.entries) }
    }

    fileprivate struct State {
        /// The bytes of complete content.
        var kept: UInt64 = 0
        /// The transfers that may write. There are few.
        var running: [ResourceID: Share] = [:]
        /// The interrupted transfers, of which there may be thousands. Nothing is reserved for them beyond their bytes, whose sums are
        /// kept up to date.
        private(set) var resting: [ResourceID: Share] = [:]
        private var restingBytes: [PeerID?: UInt64] = [:]
        private var allRestingBytes: UInt64 = 0

        subscript(id: ResourceID) -> Share? { self.running[id] ?? self.resting[id] }

        var held: UInt64 {
            self.running.values.reduce(self.kept.addingClamped(self.allRestingBytes)) { $0.addingClamped($1.room.bytes) }
        }

        /// Returns the space of all unfinished transfers of a peer except `id`.
        func held(by peer: PeerID, but id: ResourceID) -> UInt64 {
            let own = self.resting[id].flatMap { $0.peer == peer ? $0.room.bytes : nil } ?? 0
            let resting = self.restingBytes[peer] ?? 0
            return self.running.reduce(resting - min(own, resting)) {
                $1.key != id && $1.value.peer == peer ? $0.addingClamped($1.value.room.bytes) : $0
            }
        }

        /// Moves a share to the interrupted ones.
        mutating func rest(_ share: Share, of id: ResourceID) {
            self.remove(id)
            self.resting[id] = share
            self.allRestingBytes = self.allRestingBytes.addingClamped(share.room.bytes)
            self.restingBytes[share.peer] = (self.restingBytes[share.peer] ?? 0).addingClamped(share.room.bytes)
        }

        @discardableResult
        mutating func remove(_ id: ResourceID) -> Share? {
            if let share = self.running.removeValue(forKey: id) { return share }
            guard let share = self.resting.removeValue(forKey: id) else { return nil }
            self.allRestingBytes -= min(share.room.bytes, self.allRestingBytes)
            let left = self.restingBytes[share.peer] ?? 0
            self.restingBytes[share.peer] = left > share.room.bytes ? left - share.room.bytes : nil
            return share
        }
    }

    private let state = Mutex(State())

    /// The bytes of complete content and of reserved space.
    var held: UInt64 { self.state.withLock { $0.held } }

    /// Sets the bytes of complete content to the value measured on the disk.
    func counted(kept bytes: UInt64) { self.state.withLock { $0.kept = bytes } }

    /// Reserves space for a transfer, replacing its earlier share. `isTree` determines the wording of an error. Waits for the disk to
    /// report its free space.
    ///
    /// - Throws: `no-space` beyond the peer's share, the quota, the reserve or the disk, with nothing changed; `storage`.
    func reserve(
        _ room: Room, for id: ResourceID, within allowance: Spool.Allowance, on disk: SafeDirectory, isTree: Bool
    ) throws(EarshotError) -> Spent {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in
                try state.check(room, for: id, within: allowance, on: disk, isTree: isTree)
                let spent = state.remove(id)?.spent ?? Spent()
                state.running[id] = Share(room: room, spent: spent, peer: allowance.share?.peer)
                return spent
            }
        }
        return try result.get()
    }

    /// Reserves space for files, all of them or none. Throws as `reserve`.
    func reserve(
        _ files: [(id: ResourceID, room: Room)], within allowance: Spool.Allowance, on disk: SafeDirectory
    ) throws(EarshotError) {
        guard let first = files.first else { return }
        let sum = files.reduce((bytes: UInt64(0), entries: UInt64(0))) { ($0.bytes.addingClamped($1.room.bytes), $0.entries + 1) }
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in
                let room = Room(bytes: sum.bytes, entries: sum.entries)
                try state.check(room, for: first.id, within: allowance, on: disk, isTree: false)
                for (id, room) in files { state.running[id] = Share(room: room, spent: Spent(), peer: allowance.share?.peer) }
            }
        }
        try result.get()
    }

    /// Checks whether the space could be reserved now. Throws as `reserve`.
    func check(_ room: Room, for id: ResourceID, within allowance: Spool.Allowance, on disk: SafeDirectory) throws(EarshotError) {
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in try state.check(room, for: id, within: allowance, on: disk, isTree: false) }
        }
        try result.get()
    }

    /// Adds a peer's transfer from an earlier run, with no reserved space yet.
    func adopt(_ id: ResourceID, of peer: PeerID) -> Spent {
        let share = Share(room: Room(bytes: 0, entries: 0), spent: Spent(), peer: peer)
        self.state.withLock { $0.rest(share, of: id) }
        return share.spent
    }

    /// Reduces the share of an interrupted transfer to its received bytes. Nothing may write to it now.
    func shrink(_ id: ResourceID) {
        self.state.withLock { state in
            guard var share = state[id] else { return }
            share.room = Room(bytes: share.spent.bytes.value, entries: share.spent.entries.value)
            state.rest(share, of: id)
        }
    }

    /// Releases the space of a finished transfer, if it has any.
    func release(_ id: ResourceID) { self.state.withLock { _ = $0.remove(id) } }

    /// Converts the reserved space of a complete transfer into kept space.
    func keep(_ id: ResourceID) {
        self.state.withLock { state in
            guard let share = state.remove(id) else { return }
            state.kept = state.kept.addingClamped(share.room.bytes)
        }
    }

    /// Subtracts complete content that is gone.
    func removed(_ bytes: UInt64) { self.state.withLock { $0.kept -= min(bytes, $0.kept) } }
}

extension SpoolLedger.State {
    fileprivate func check(
        _ room: SpoolLedger.Room, for id: ResourceID, within allowance: Spool.Allowance, on disk: SafeDirectory, isTree: Bool
    ) throws(EarshotError) {
        let what = "the \(isTree ? "directory" : "file") takes \(room.bytes) bytes on the disk, which do not fit"
        if let share = allowance.share { try self.check(room, for: id, within: share, of: allowance.quota, what) }
        let own = self[id]
        let others = self.held - min(own?.room.bytes ?? 0, self.held)
        let (sum, overflow) = others.addingReportingOverflow(room.bytes)
        guard !overflow, sum <= allowance.quota else {
            throw EarshotError(
                .noSpace,
                "\(what): the spool holds \(others) of the \(allowance.quota) bytes of its quota; make room on that machine",
                remedy: .clearFiles)
        }
        do {
            // The missing bytes of other transfers are promised to them. The free space already excludes this transfer's written bytes.
            let owed = self.running.reduce(UInt64(0)) { $1.key == id ? $0 : $0.addingClamped($1.value.owedBytes) }
            let free = try disk.space().usable(reserve: allowance.reserve)
            let usable = free - min(owed, free)
            guard room.bytes - min(own?.spent.bytes.value ?? 0, room.bytes) <= usable else {
                throw EarshotError(
                    .noSpace, "\(what): the disk has \(usable) free beyond the reserve; free some space, or lower resources.reserve")
            }
            // The reserve of entries stays free for other programs that create files.
            guard let freeEntries = try disk.entrySpace()?.usable(reserve: allowance.reserve) else { return }
            let owedEntries = self.running.reduce(UInt64(0)) { $1.key == id ? $0 : $0.addingClamped($1.value.owedEntries) }
            let left = freeEntries - min(owedEntries, freeEntries)
            guard room.entries - min(own?.spent.entries.value ?? 0, room.entries) <= left else {
                throw EarshotError(
                    .noSpace, "it has \(room.entries) entries, and the disk has room for \(left) more beyond the reserve")
            }
        } catch {
            throw Spool.error(error)
        }
    }

    private func check(
        _ room: SpoolLedger.Room, for id: ResourceID, within share: QuotaShare, of quota: UInt64, _ what: String
    ) throws(EarshotError) {
        let (limit, held) = (share.bytes(of: quota), self.held(by: share.peer, but: id))
        let (sum, overflow) = held.addingReportingOverflow(room.bytes)
        guard !overflow, sum <= limit else {
            throw EarshotError(
                .noSpace,
                "\(what): the unfinished transfers of one peer may hold \(share.words) of the quota, \(limit) bytes, and hold \(held); wait for "
                    + "those to end, or cancel one", remedy: .cancelFile)
        }
    }
}

extension SpoolLedger.Room {
    /// Creates the space of a file of this size.
    init(file bytes: UInt64, on blocks: DiskBlocks) {
        self.init(bytes: blocks.file(bytes), entries: 1)
    }

    /// Creates the space of a directory, if only the length of its tree is known.
    init(tree bytes: UInt64, on blocks: DiskBlocks) {
        self.init(bytes: blocks.tree(bytes), entries: DiskBlocks.treeEntries)
    }

    /// Creates the space of a directory from its list of entries.
    init(_ manifest: TreeManifest, on blocks: DiskBlocks) {
        self.init(bytes: manifest.room(on: blocks), entries: UInt64(manifest.count) + DiskBlocks.treeEntries)
    }
}
