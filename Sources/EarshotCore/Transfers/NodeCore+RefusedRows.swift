import EarshotWire
import OrderedCollections

/// Rows of transfers that the disk refused while no caller waited for them. Without a retry, a transfer that is over here would resume
/// after the next start.
extension NodeCore {
    mutating func rowsRefused(_ ids: [ResourceID]) {
        self.unwritten.refuse(ids)
        if !self.isStopping { self.set(.transferRows, after: EarshotLimits.keepPause) }
    }

    /// Writes the rows of ended transfers as they are in memory. The rows of the others are written with their next change.
    mutating func keepRefusedRows() {
        self.deadlines.cancel(.transferRows)
        // Memory follows the commits that are under way, so its rows must not be written behind them.
        guard self.transfers.commitCount == 0 else { return self.set(.transferRows, after: EarshotLimits.keepPause) }
        let (refused, ends) = self.unwritten.takeRefused()
        var changes: [TransferChange] = []
        for id in refused {
            guard let transfer = self.transfers[id] else {
                changes.append(.remove(id, self.transfers.ended(id)))
                continue
            }
            guard !transfer.isOpen else { continue }
            changes += [.put(transfer.row, isNew: false), transfer.stored.map { .putTransfer($0) } ?? .removeTransfer(id)]
        }
        if !changes.isEmpty { self.emit(.keepTransfers(changes)) }
        if !ends.isEmpty { self.commit(.ended(ends, nil), []) }
    }
}
