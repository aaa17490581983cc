import EarshotCore
import EarshotWire

/// Changes of transfers' rows for one transaction, with the latest version of each row. If a row is created, changed ten times and removed
/// before the disk is ready, nothing is written at all.
struct RowChanges {
    private enum Going {
        case put(StoredTransfer)
        case remove
    }

    private struct Entry {
        let place: Int
        /// Whether the row is new: the store has never seen it.
        var isNew = false
        var isRemoved = false
        var row: Resource?
        /// The data with which the transfer can be resumed.
        var going: Going?
        var ended: EndedTransfer?
    }

    private var entries: [ResourceID: Entry] = [:]
    private var places = 0

    /// The number of rows with changes.
    var count: Int { self.entries.count }
    var ids: [ResourceID] { Array(self.entries.keys) }

    mutating func apply(_ change: TransferChange) {
        switch change {
        case .put(let row, let isNew): self.put(row, isNew: isNew)
        case .putTransfer(let stored): self.put(stored)
        case .removeTransfer(let id): self.removeTransfer(id)
        case .remove(let id, let ended): self.remove(id, ended)
        }
    }

    /// Records the current version of a row; `isNew` if the store has no row with this id.
    mutating func put(_ row: Resource, isNew: Bool = false) {
        self.change(row.id) { entry in
            if isNew, entry.row == nil, entry.going == nil, !entry.isRemoved { entry.isNew = true }
            entry.row = row
        }
    }

    /// Records the data with which a transfer can be resumed.
    mutating func put(_ stored: StoredTransfer) { self.change(stored.id) { $0.going = .put(stored) } }

    /// Records that a transfer will not be resumed.
    mutating func removeTransfer(_ id: ResourceID) { self.change(id) { $0.going = $0.isNew ? nil : .remove } }

    /// Records that a row is removed. `ended` is persisted if the transfer's sender may ask again.
    mutating func remove(_ id: ResourceID, _ ended: EndedTransfer?) {
        self.change(id) { entry in
            entry.row = nil
            entry.going = nil
            entry.isRemoved = !entry.isNew
            entry.isNew = false
            entry.ended = ended
        }
        if let entry = self.entries[id], !entry.isRemoved, entry.ended == nil { self.entries[id] = nil }
    }

    private mutating func change(_ id: ResourceID, _ change: (inout Entry) -> Void) {
        var entry = self.entries[id] ?? Entry(place: self.places)
        self.places += 1
        change(&entry)
        self.entries[id] = entry
    }

    /// The operations for the store.
    var changes: [StoreOperation] {
        self.entries.sorted { $0.value.place < $1.value.place }.flatMap { id, entry -> [StoreOperation] in
            var changes: [StoreOperation] = []
            if entry.isRemoved { changes.append(.removeResource(id)) }
            if let row = entry.row { changes.append(.putResource(row)) }
            switch entry.going {
            case .put(let stored)?: changes.append(.putTransfer(stored))
            case .remove?: changes.append(.removeTransfer(id))
            case nil: break
            }
            if let ended = entry.ended { changes.append(.putEndedTransfer(ended)) }
            return changes
        }
    }
}
