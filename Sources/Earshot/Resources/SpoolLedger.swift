internal import EarshotSafety
internal import EarshotWire
internal import Synchronization

/// The spool's account: what it keeps, and what is set aside for each transfer that is not whole yet.
///
/// A file sets its size aside before its first byte. What a directory takes is known only with its manifest, on whatever thread writes it:
/// then its share is raised here, or refused, in one step with looking at the shares of all others. So the quota, and what is to be left
/// free of the disk, hold for all of them together.
final class SpoolLedger: Sendable {
    /// What a transfer takes in the end.
    struct Room {
        /// In bytes.
        let bytes: UInt64
        /// Entries of the file system, where they are many.
        var entries: UInt64 = 0
    }

    /// How much of what was set aside is on the disk by now; counted by the thread that writes there.
    final class Spent: Sendable {
        let bytes = TransferCount()
        let entries = TransferCount()
    }

    fileprivate struct Share {
        var room: Room
        let spent: Spent

        var owedBytes: UInt64 { self.room.bytes - min(self.spent.bytes.value, self.room.bytes) }
        var owedEntries: UInt64 { self.room.entries - min(self.spent.entries.value, self.room.entries) }
    }

    fileprivate struct State {
        /// Bytes of what is whole.
        var kept: UInt64 = 0
        var shares: [ResourceID: Share] = [:]

        var held: UInt64 { self.shares.values.reduce(self.kept) { $0.addingClamped($1.room.bytes) } }
    }

    private let state = Mutex(State())

    /// Bytes of what is whole, and of what is set aside.
    var held: UInt64 { self.state.withLock { $0.held } }

    /// What is whole takes so much, as a look at the disk has shown.
    func counted(kept bytes: UInt64) { self.state.withLock { $0.kept = bytes } }

    /// Sets room aside for a transfer, in place of what it may have so far; `isTree` is for the words of an error.
    ///
    /// Waits for the disk to say what is free. Throws `no-space` beyond the quota, the reserve or the disk, with nothing changed; `storage`.
    func reserve(
        _ room: Room, for id: ResourceID, within allowance: Spool.Allowance, on disk: SafeDirectory, isTree: Bool
    ) throws(EarshotError) -> Spent {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in
                try state.check(room, for: id, within: allowance, on: disk, isTree: isTree)
                let spent = state.shares[id]?.spent ?? Spent()
                state.shares[id] = Share(room: room, spent: spent)
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

    /// Enters what an earlier run had set aside.
    func adopt(_ room: Room, for id: ResourceID) -> Spent {
        let share = Share(room: room, spent: Spent())
        self.state.withLock { $0.shares[id] = share }
        return share.spent
    }

    /// What is on the disk of a transfer for which room is set aside.
    func spent(_ id: ResourceID) -> Spent? { self.state.withLock { $0.shares[id]?.spent } }

    /// A transfer is over: its room is free again; nothing happens where it has none.
    func release(_ id: ResourceID) { self.state.withLock { $0.shares[id] = nil } }

    /// A transfer is whole: what was set aside for it is kept.
    func keep(_ id: ResourceID) {
        self.state.withLock { state in
            guard let share = state.shares.removeValue(forKey: id) else { return }
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
        let own = self.shares[id]
        let others = self.held - min(own?.room.bytes ?? 0, self.held)
        let what = isTree ? "the directory takes \(room.bytes) bytes on the disk, which" : "\(room.bytes) bytes"
        let (sum, overflow) = others.addingReportingOverflow(room.bytes)
        guard !overflow, sum <= allowance.quota else {
            throw EarshotError(
                .noSpace,
                "\(what) do not fit: the spool holds \(others) of the \(allowance.quota) bytes of its quota; fetch or delete some")
        }
        do {
            // What others have still to write is promised to them; what this one has written is not free any more.
            let owed = self.shares.reduce(UInt64(0)) { $1.key == id ? $0 : $0.addingClamped($1.value.owedBytes) }
            let free = try disk.space().usable(reserve: allowance.reserve)
            let usable = free - min(owed, free)
            guard room.bytes - min(own?.spent.bytes.value ?? 0, room.bytes) <= usable else {
                throw EarshotError(
                    .noSpace,
                    "\(what) do not fit: the disk has \(usable) free beyond the reserve; free some space, or lower resources.reserve")
            }
            guard room.entries > 0, let freeEntries = try disk.freeEntries() else { return }
            let owedEntries = self.shares.reduce(UInt64(0)) { $1.key == id ? $0 : $0.addingClamped($1.value.owedEntries) }
            let left = freeEntries - min(owedEntries, freeEntries)
            guard room.entries - min(own?.spent.entries.value ?? 0, room.entries) <= left else {
                throw EarshotError(.noSpace, "the directory has \(room.entries) entries, and the disk has room for \(left) more")
            }
        } catch {
            throw Spool.error(error)
        }
    }
}

extension UInt64 {
    /// The sum, or the largest number where it is larger.
    fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
