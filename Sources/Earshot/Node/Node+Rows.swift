import DequeModule

/// Keeping transfers' rows where nobody waits for that.
extension Node {
    /// Has rows written as they are now, in the store's order. What comes before the disk has had time for it is written together, each row
    /// once: a peer that offers and cancels as fast as it can costs one transaction at a time, however many they were.
    func keepRows(_ change: (inout RowChanges) -> Void) {
        guard !self.isStoreClosed else { return }
        if self.isRowBatchOpen, let last = self.rowBatches.indices.last { return change(&self.rowBatches[last]) }
        var rows = RowChanges()
        change(&rows)
        self.enqueue(
            .decide({
                // The queue's order is theirs.
                let rows = self.rowBatches.popFirst()
                if self.rowBatches.isEmpty { self.isRowBatchOpen = false }
                return .success(StoreWork.Decision(changes: rows?.changes ?? []))
            }) { _ in })
        self.rowBatches.append(rows)
        self.isRowBatchOpen = true
    }
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
