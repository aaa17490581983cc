package import EarshotWire

/// How an incoming resource ended whose row is gone: its sender may not have heard of it, and offers it again then.
package struct EndedTransfer: Sendable, Hashable, Identifiable {
    package let id: ResourceID
    package let peerID: PeerID
    /// Why it did not come to be complete; `nil` where it did.
    package let error: EarshotError.Code?
    /// In words; empty where it is complete.
    package let message: String
    package let endedAt: WallTime

    package init(id: ResourceID, peerID: PeerID, error: EarshotError.Code? = nil, message: String = "", endedAt: WallTime) {
        self.id = id
        self.peerID = peerID
        self.error = error
        self.message = message
        self.endedAt = endedAt
    }
}
