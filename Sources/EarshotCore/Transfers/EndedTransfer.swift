package import EarshotWire

/// The end of an incoming resource whose row has been removed. If its sender has not heard of the end, it offers the resource again.
package struct EndedTransfer: Sendable, Hashable, Identifiable {
    package let id: ResourceID
    package let peerID: PeerID
    /// Why the transfer failed; `nil` if it completed.
    package let error: EarshotError.Code?
    /// The error as text; empty if the transfer completed.
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
