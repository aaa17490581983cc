package import EarshotWire

/// A device to send to: its id, which its certificate must prove before the first byte of a request, and the place to reach it.
package struct DeviceTarget: Sendable, Hashable {
    package let id: PeerID
    package let address: PeerAddress

    package init(id: PeerID, address: PeerAddress) {
        self.id = id
        self.address = address
    }
}

/// Why a request to a device failed.
package enum DeviceFailure: Error, Sendable, Hashable {
    /// No connection, or lost before the first byte of the request's body was sent.
    case unreachable(String)
    /// Another certificate answered.
    case identityMismatch
    /// The connection was lost after the body began: the outcome is unknown.
    case lost(String)
    /// The device answered with another status than success.
    case refused(status: UInt16)
    /// The answer is not LocalSend's.
    case invalid(String)
}
