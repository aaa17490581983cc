internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Synchronization

/// The spool's account: what it keeps, and what is set aside for each transfer that is not whole yet.
///
/// A file sets its room aside before its first byte. What a directory takes is known only with its manifest, on whatever thread writes it:
/// then its share is raised here, or refused, in one step with looking at the shares of all others. So the quota, what one peer may have
/// of it, and what is to be left free of the disk hold for all of them together. An interrupted transfer holds what has come of it.
final class SpoolLedger: Sendable {
    /// What a transfer takes in the end.
    struct Room {
        /// In bytes.
        let bytes: UInt64
        /// Entries of the file system.
        let entries: UInt64
    }

    /// How much of what was set aside is on the disk by now; counted by the thread that writes there.
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
        /// Whose it is; `nil` for this node's own.
        let peer: PeerID?

        var owedBytes: UInt64 { self.room.bytes - min(self.spent.bytes.value, self.room.bytes) }
        var owedEntries: UInt64 { self.room.entries - min(self.spent.entries.value, self.room.entries) }
    }

    fileprivate struct State {
        /// Bytes of what is whole.
        var kept: UInt64 = 0
        /// Those that may write; there are few.
        var running: [ResourceID: Share] = [:]
        /// The interrupted ones, which may be thousands: they are owed nothing, and their bytes are summed up as they come and go.
        private(set) var resting: [ResourceID: Share] = [:]
        private var restingBytes: [PeerID?: UInt64] = [:]
        private var allRestingBytes: UInt64 = 0

        subscript(id: ResourceID) -> Share? { self.running[id] ?? self.resting[id] }

        var held: UInt64 {
            self.running.values.reduce(self.kept.addingClamped(self.allRestingBytes)) { $0.addingClamped($1.room.bytes) }
        }

        /// What the unfinished transfers of a peer hold, but for one.
        func held(by peer: PeerID, but id: ResourceID) -> UInt64 {
            let own = self.resting[id].flatMap { $0.peer == peer ? $0.room.bytes : nil } ?? 0
            let resting = self.restingBytes[peer] ?? 0
            return self.running.reduce(resting - min(own, resting)) {
                $1.key != id && $1.value.peer == peer ? $0.addingClamped($1.value.room.bytes) : $0
            }
        }

        /// Puts a share among those at rest.
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

    /// Bytes of what is whole, and of what is set aside.
    var held: UInt64 { self.state.withLock { $0.held } }

    /// What is whole takes so much, as a look at the disk has shown.
    func counted(kept bytes: UInt64) { self.state.withLock { $0.kept = bytes } }

    /// Sets room aside for a transfer, in place of what it may have so far; `isTree` is for the words of an error.
    ///
    /// Waits for the disk to say what is free. Throws `no-space` beyond the peer's share, the quota, the reserve or the disk, with nothing
    /// changed; `storage`.
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

    /// Whether so much could be set aside for it now. Throws as `reserve`.
    func check(_ room: Room, for id: ResourceID, within allowance: Spool.Allowance, on disk: SafeDirectory) throws(EarshotError) {
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in try state.check(room, for: id, within: allowance, on: disk, isTree: false) }
        }
        try result.get()
    }

    /// Enters a peer's transfer that an earlier run has left, with nothing set aside yet.
    func adopt(_ id: ResourceID, of peer: PeerID) -> Spent {
        let share = Share(room: Room(bytes: 0, entries: 0), spent: Spent(), peer: peer)
        self.state.withLock { $0.rest(share, of: id) }
        return share.spent
    }

    /// An interrupted transfer keeps what has come of it, and no room for the rest; nothing writes to it now.
    func shrink(_ id: ResourceID) {
        self.state.withLock { state in
            guard var share = state[id] else { return }
            share.room = Room(bytes: share.spent.bytes.value, entries: share.spent.entries.value)
            state.rest(share, of: id)
        }
    }

    /// A transfer is over: its room is free again; nothing happens where it has none.
    func release(_ id: ResourceID) { self.state.withLock { _ = $0.remove(id) } }

    /// A transfer is whole: what was set aside for it is kept.
    func keep(_ id: ResourceID) {
        self.state.withLock { state in
            guard let share = state.remove(id) else { return }
            state.kept = state.kept.addingClamped(share.room.bytes)
        }
    }

    /// Something that was whole is gone.
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
            // What others have still to write is promised to them; what this one has written is not free any more.
            let owed = self.running.reduce(UInt64(0)) { $1.key == id ? $0 : $0.addingClamped($1.value.owedBytes) }
            let free = try disk.space().usable(reserve: allowance.reserve)
            let usable = free - min(owed, free)
            guard room.bytes - min(own?.spent.bytes.value ?? 0, room.bytes) <= usable else {
                throw EarshotError(
                    .noSpace, "\(what): the disk has \(usable) free beyond the reserve; free some space, or lower resources.reserve")
            }
            // What is left free is left to others who make files as well.
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
    /// What a file of so many bytes takes.
    init(file bytes: UInt64, on blocks: DiskBlocks) {
        self.init(bytes: blocks.file(bytes), entries: 1)
    }

    /// What a directory takes of which only the length of its tree is known.
    init(tree bytes: UInt64, on blocks: DiskBlocks) {
        self.init(bytes: blocks.tree(bytes), entries: DiskBlocks.treeEntries)
    }

    /// What it takes once its list of entries is here.
    init(_ manifest: TreeManifest, on blocks: DiskBlocks) {
        self.init(bytes: manifest.room(on: blocks), entries: UInt64(manifest.count) + DiskBlocks.treeEntries)
    }
}
