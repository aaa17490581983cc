package import EarshotWire

/// The facts about a peer that one part of the node decides and other parts may read.
package struct PeerFacts: Sendable, Hashable {
    package let id: PeerID
    package let name: String
    package let trust: Trust
    /// The session with the peer.
    package let session: SessionID?
    /// The present control connection.
    package let link: LinkID?
    /// Whether that connection carries the session.
    package let isAttached: Bool
}

/// The facts about a control connection that the core needs.
package struct LinkFacts: Sendable, Hashable {
    package let peer: ProvenPeer
    /// The address of the other side: an IPv4 address or an IPv6 /64; empty if it is not known.
    package let origin: [UInt8]
    /// Whether this side dialled.
    package let isInitiator: Bool
    /// The address that this side dialled.
    package let dialledAddress: PeerAddress?
    /// The time until which a configured authority vouches for the peer's certificate; `nil` if none does.
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
    /// Whether traffic over the transport can be read on the wire.
    package var protection: Protection {
        switch self {
        case .tls: .encrypted
        case .plaintext: .unprotected
        }
    }
}
