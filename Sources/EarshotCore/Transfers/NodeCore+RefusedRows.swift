import EarshotWire
import OrderedCollections

/// Rows of transfers that the disk has refused, where no caller waits for that: what is over here would go on with the next start.
extension NodeCore {
    mutating func rowsRefused(_ ids: [ResourceID]) {
        self.refusedRows.append(contentsOf: ids)
        // Peers offer and cancel as much as they like meanwhile.
        while self.refusedRows.count > EarshotLimits.rememberedTransfers,
            let oldest = self.refusedRows.firstIndex(where: { self.spooledEnds[$0] == nil })
        {
            self.refusedRows.remove(at: oldest)
        }
        if !self.isStopping { self.set(.transferRows, after: EarshotLimits.keepPause) }
    }

    /// Writes those that are over as memory has them. What becomes of the others is written anyhow.
    mutating func keepRefusedRows() {
        self.deadlines.cancel(.transferRows)
        // Memory follows what is on its way to the disk, and is not to be written behind that.
        guard self.transfers.commitCount == 0 else { return self.set(.transferRows, after: EarshotLimits.keepPause) }
        var changes: [TransferChange] = []
        for id in self.refusedRows {
            guard let transfer = self.transfers[id] else {
                changes.append(.remove(id, self.transfers.ended(id)))
                continue
            }
            guard !transfer.isOpen else { continue }
            changes += [.put(transfer.row, isNew: false), transfer.stored.map { .putTransfer($0) } ?? .removeTransfer(id)]
        }
        let spooled = self.refusedRows.compactMap { self.spooledEnds[$0] }
        self.refusedRows = []
        if !changes.isEmpty { self.emit(.keepTransfers(changes)) }
        if !spooled.isEmpty { self.commit(.ended(spooled, nil), []) }
    }
}
