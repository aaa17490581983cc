extension EndedTransfer {
    /// The end of a row that is about to be removed, at a time of the running clock; `nil` where its sender may as well begin anew.
    package init?(_ row: Resource, at time: WallTime) {
        guard row.direction == .incoming else { return nil }
        let (error, message): (EarshotError.Code?, String)
        switch row.state {
        case .completed: (error, message) = (nil, "")
        case .cancelled: (error, message) = (row.error ?? .cancelled, row.errorMessage ?? "it was cancelled")
        // What has failed here may be tried again; what is not over does not lose its row.
        case .failed, .offered, .transferring, .paused: return nil
        }
        self.init(id: row.id, peerID: row.peerID, error: error, message: message, endedAt: time)
    }
}
