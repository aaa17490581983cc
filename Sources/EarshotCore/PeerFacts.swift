package import EarshotWire

/// What one part of the node may know of a peer that another part decides about.
package struct PeerFacts: Sendable, Hashable {
    package let id: PeerID
    package let name: String
    package let trust: Trust
    /// The session with it.
    package let session: SessionID?
    /// The control connection that stands.
    package let link: LinkID?
    /// Whether the session is carried by that connection.
    package let isAttached: Bool
}

/// What the core has to know of a control connection.
package struct LinkFacts: Sendable, Hashable {
    package let peer: ProvenPeer
    /// Where the other side is: an IPv4 address, or an IPv6 /64; empty where that cannot be told.
    package let origin: [UInt8]
    /// Whether this side dialled.
    package let isInitiator: Bool
    /// Where this side dialled.
    package let dialledAddress: PeerAddress?
    /// Until when an authority of the settings speaks for the peer's certificate; `nil` where none does.
    package let vouchedUntil: WallTime?

    package init(peer: ProvenPeer, origin: [UInt8], isInitiator: Bool, dialledAddress: PeerAddress?, vouchedUntil: WallTime?) {
        self.peer = peer
        self.origin = origin
        self.isInitiator = isInitiator
        self.dialledAddress = dialledAddress
        self.vouchedUntil = vouchedUntil
    }

    package var protection: Protection { self.peer.transport.protection }
}

extension TransportKind {
    /// Whether what passes over it can be read on the wire.
    package var protection: Protection {
        switch self {
        case .tls: .encrypted
        case .plaintext: .unprotected
        }
    }
}
