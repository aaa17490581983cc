import DequeModule
import EarshotCore

/// Keeping transfers' rows where no caller waits for that.
extension Node {
    /// Has rows written as they are now, in the store's order. What comes before the disk has had time for it is written together, each row
    /// once: a peer that offers and cancels as fast as it can costs one transaction at a time, however many they were.
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
                // The queue's order is theirs.
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

/// Rows that are written together, and what each peer is charged for having them changed.
struct RowBatch {
    var rows = RowChanges()
    var charges: [Charge] = []
}

extension StoreWork {
    /// Whether it may be about rows of transfers, so that later changes of these must not go before it.
    var maySettleRows: Bool {
        switch self {
        case .apply, .decide: true
        case .deliver, .outbox: false
        }
    }
}
