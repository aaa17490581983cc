public import EarshotWire

/// The state of a session member, as in Multipeer Connectivity.
public enum MemberState: String, Sendable, Hashable, Codable, CaseIterable {
    case notConnected = "not_connected"
    case connecting
    case connected
}

/// Whether traffic between two peers can be read on the wire.
public enum Protection: String, Sendable, Hashable, Codable, CaseIterable {
    /// TLS 1.3.
    case encrypted
    /// Plaintext, after a handshake that proved both keys.
    case unprotected
}

/// A node with one identity, as this machine sees it now. Two values are equal if all their fields are; to find the same peer again,
/// compare ``id``.
public struct Peer: Sendable, Hashable, Codable, Identifiable {
    /// Whether the peer is reachable as far as this machine knows.
    public enum Presence: String, Sendable, Hashable, Codable, CaseIterable {
        /// Advertised, or connected.
        case nearby
        case away
    }

    /// The origin of a peer's row.
    public enum Source: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
        case avahi, embedded, configured
        /// The peer dialled this machine.
        case incoming
        /// A stored decision or session.
        case store
        /// The peer is a LocalSend device that was seen on the network.
        case localsend

        /// Compares alphabetically, for a stable listing.
        public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// The reason why a peer could not be reached.
    public struct Failure: Sendable, Hashable, Codable {
        /// The kind of failure, such as `identity-mismatch` if another key answered.
        public let code: EarshotError.Code
        /// A message of one sentence.
        public let message: String

        package init(code: EarshotError.Code, message: String) {
            self.code = code
            self.message = message
        }

        enum CodingKeys: String, CodingKey {
            case code, message
        }
    }

    /// The digest of the peer's public key, or of a LocalSend device's certificate.
    public let id: PeerID
    /// The protocol that the peer speaks.
    public let kind: PeerID.Kind
    /// The fingerprint of a LocalSend device's certificate, as LocalSend shows it; `nil` for an Earshot peer.
    public let fingerprint: String?
    /// The name that this machine shows: the alias that a user here has given, else the peer's display name. A display name is an untrusted
    /// label: the proven name if there is one, else the advertised name.
    public let name: String
    /// The peer's display name, if ``name`` is an alias.
    public let displayName: String?
    /// Whether the peer is nearby.
    public let presence: Presence
    /// The state of the session with the peer.
    public let state: MemberState
    /// The trust that was decided about the peer.
    public let trust: Trust
    /// The protection of the present connection; `nil` without a connection.
    public let protection: Protection?
    /// Whether the peer has ever proven its key to this daemon (in this run, or by a stored decision).
    public let proven: Bool
    /// The addresses at which the peer can be reached, such as `10.0.0.7:47110` and `[fe80::1%eth0]:47110`.
    public let addresses: [String]
    /// The advertisement's pairs without Earshot's own keys: public and untrusted.
    public let discoveryInfo: [String: String]
    /// The origins of the peer's row, sorted.
    public let sources: [Source]
    /// The reason why the last attempt to reach the peer failed; `nil` if nothing is wrong, or no attempt was made.
    public let error: Failure?
    /// The source of the peer's trust or block; `nil` if its trust is unknown.
    public let trustSource: TrustSource?
    /// The time at which the peer's trust expires.
    package let trustEnd: WallTime?
    /// The result of the last comparison of digits with the peer.
    public let verified: Verified?
    /// Another peer with the same name. If both peers are known, the name is ambiguous, unless it is an alias of one. Otherwise only one of
    /// them is known.
    public let nameConflict: PeerID?
    /// The time at which the peer was first seen, by this machine's clock.
    package let firstSighting: WallTime
    /// The time of the last sign of the peer.
    package let lastSign: WallTime

    package init(
        id: PeerID, name: String, displayName: String? = nil, presence: Presence, state: MemberState, trust: Trust, protection: Protection?,
        proven: Bool,
        addresses: [String], discoveryInfo: [String: String], sources: [Source], error: Failure? = nil,
        trustSource: TrustSource? = nil, trustEnd: WallTime? = nil, verified: Verified? = nil, nameConflict: PeerID? = nil,
        firstSighting: WallTime, lastSign: WallTime
    ) {
        self.id = id
        self.kind = id.kind
        self.fingerprint = id.fingerprint
        self.name = name
        self.displayName = displayName
        self.presence = presence
        self.state = state
        self.trust = trust
        self.protection = protection
        self.proven = proven
        self.addresses = addresses
        self.discoveryInfo = discoveryInfo
        self.sources = sources
        self.error = error
        self.trustSource = trustSource
        self.trustEnd = trustEnd
        self.verified = verified
        self.nameConflict = nameConflict
        self.firstSighting = firstSighting
        self.lastSign = lastSign
    }

    private enum CodingKeys: String, CodingKey {
        case id, kind, fingerprint
        case name, displayName, presence, state, trust, protection, proven, addresses, discoveryInfo, sources, error, trustSource
        case trustEnd = "trustExpiresAt"
        case verified, nameConflict
        case firstSighting = "firstSeen"
        case lastSign = "lastSeen"
    }
}
