extension EndedTransfer {
    /// Creates the record of a row that is about to be removed, at a time of the running clock; `nil` if its sender may start again.
    package init?(_ row: Resource, at time: WallTime) {
        guard row.direction == .incoming else { return nil }
        let (error, message): (EarshotError.Code?, String)
        switch row.state {
        case .completed: (error, message) = (nil, "")
        case .cancelled: (error, message) = (row.error ?? .cancelled, row.errorMessage ?? "it was cancelled")
        // A failed transfer may be retried here. The row of a transfer that is not over is never removed.
        case .failed, .offered, .transferring, .paused: return nil
        }
        self.init(id: row.id, peerID: row.peerID, error: error, message: message, endedAt: time)
    }
}
