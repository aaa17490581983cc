package import EarshotWire
package import FoundationEssentials

/// How an incoming resource ended whose row is gone: its sender may not have heard of it, and offers it again then.
package struct EndedTransfer: Sendable, Hashable, Identifiable {
    package let id: ResourceID
    package let peerID: PeerID
    /// Why it did not come to be complete; `nil` where it did.
    package let error: EarshotError.Code?
    /// In words; empty where it is complete.
    package let message: String
    package let endedAt: Date

    package init(id: ResourceID, peerID: PeerID, error: EarshotError.Code? = nil, message: String = "", endedAt: Date) {
        self.id = id
        self.peerID = peerID
        self.error = error
        self.message = message
        self.endedAt = endedAt
    }

    /// Of a row that is about to go; `nil` where its sender may as well begin anew.
    init?(_ row: Resource) {
        guard row.direction == .incoming else { return nil }
        let (error, message): (EarshotError.Code?, String)
        switch row.state {
        case .completed: (error, message) = (nil, "")
        case .cancelled: (error, message) = (row.error ?? .cancelled, row.errorMessage ?? "it was cancelled")
        // What has failed here may be tried again; what is not over does not lose its row.
        case .failed, .offered, .transferring, .paused: return nil
        }
        self.init(id: row.id, peerID: row.peerID, error: error, message: message, endedAt: row.completedAt ?? row.createdAt)
    }
}
