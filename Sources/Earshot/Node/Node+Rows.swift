import DequeModule
import EarshotCore

/// Persisting transfers' rows when no caller waits for it.
extension Node {
    /// Queues rows to be written in the store's order, with their values at the time of writing. Changes that arrive before the disk is
    /// ready are written together, each row once. However fast a peer offers and cancels, it costs one transaction at a time.
    func keepRows(_ changes: [TransferChange]) {
        guard !self.isStoreClosed else { return }
        if self.isRowBatchOpen, let last = self.rowBatches.indices.last {
            for change in changes { self.rowBatches[last].rows.apply(change) }
            if let charge = self.charge(EarshotLimits.storeWorkCharge) { self.rowBatches[last].charges.append(charge) }
            return
        }
        var batch = RowBatch()
        for change in changes { batch.rows.apply(change) }
        self.enqueue(
            .decide({
                // Batches are in the order of the queue.
                let batch = self.rowBatches.popFirst() ?? RowBatch()
                if self.rowBatches.isEmpty { self.isRowBatchOpen = false }
                self.rowsUnderWay.append(batch.rows.ids)
                return StoreWork.Decision(changes: batch.rows.changes, charges: batch.charges)
            }) { result in
                let ids = self.rowsUnderWay.popFirst() ?? []
                if case .failure = result { self.handle(.rowsRefused(ids)) }
            })
        self.rowBatches.append(batch)
        self.isRowBatchOpen = true
    }
}

/// Rows that are written together, and the charges of the peers that caused the changes.
struct RowBatch {
    var rows = RowChanges()
    var charges: [Charge] = []
}

extension StoreWork {
    /// Whether the work may concern rows of transfers. Later changes of these rows must then follow it.
    var maySettleRows: Bool {
        switch self {
        case .apply, .decide: true
        case .deliver, .outbox: false
        }
    }
}
