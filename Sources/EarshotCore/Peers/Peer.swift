public import EarshotWire

/// Multipeer Connectivity's states of a member of a session.
public enum MemberState: String, Sendable, Hashable, Codable, CaseIterable {
    case notConnected = "not_connected"
    case connecting
    case connected
}

/// Whether what passes between two peers can be read on the wire.
public enum Protection: String, Sendable, Hashable, Codable, CaseIterable {
    /// TLS 1.3.
    case encrypted
    /// Plaintext after a proven start.
    case unprotected
}

/// One node with one identity, as this machine sees it now. A value: equal and hashed by `id` alone.
public struct Peer: Sendable, Codable, Identifiable {
    /// Whether it can be reached as far as we know.
    public enum Presence: String, Sendable, Hashable, Codable, CaseIterable {
        /// Advertised, or connected.
        case nearby
        case away
    }

    /// Where a peer's row comes from.
    public enum Source: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
        case avahi, embedded, configured
        /// It dialled us.
        case incoming
        /// A decision or session that was kept.
        case store

        /// Alphabetical, for a stable listing.
        public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// Why a peer could not be reached.
    public struct Failure: Sendable, Hashable, Codable {
        /// Such as `identity-mismatch`, where another key answered.
        public let code: EarshotError.Code
        /// One sentence.
        public let message: String

        package init(code: EarshotError.Code, message: String) {
            self.code = code
            self.message = message
        }

        enum CodingKeys: String, CodingKey {
            case code, message
        }
    }

    /// The digest of its public key.
    public let id: PeerID
    /// A label, untrusted: the proven one where there is one, else the advertised one.
    public let name: String
    /// Whether it is nearby.
    public let presence: Presence
    /// Of the session with it.
    public let state: MemberState
    /// What was decided about it.
    public let trust: Trust
    /// Of the present connection; `nil` without one.
    public let protection: Protection?
    /// Whether the peer has ever proven its key to this daemon (in this run, or by a stored decision).
    public let proven: Bool
    /// Where it can be reached, such as `10.0.0.7:47110` and `[fe80::1%eth0]:47110`.
    public let addresses: [String]
    /// The advertisement's pairs but for our own keys: public and untrusted.
    public let discoveryInfo: [String: String]
    /// Where its row comes from, sorted.
    public let sources: [Source]
    /// Why it could not be reached when that was last tried; `nil` where nothing is amiss, or it was not asked for.
    public let error: Failure?
    /// Who trusts or blocks it; `nil` where its trust is unknown.
    public let trustSource: TrustSource?
    /// When its trust ends by itself.
    package let trustEnd: WallTime?
    /// What came of the last comparison of digits with it.
    public let verified: Verified?
    /// Another peer that goes by the same name: one that is known here too, so that the name means neither, else a stranger beside a known
    /// one.
    public let nameConflict: PeerID?
    /// When it was first seen, by this machine's clock.
    package let firstSighting: WallTime
    /// When it was last heard of.
    package let lastSign: WallTime

    package init(
        id: PeerID, name: String, presence: Presence, state: MemberState, trust: Trust, protection: Protection?, proven: Bool,
        addresses: [String], discoveryInfo: [String: String], sources: [Source], error: Failure? = nil,
        trustSource: TrustSource? = nil, trustEnd: WallTime? = nil, verified: Verified? = nil, nameConflict: PeerID? = nil,
        firstSighting: WallTime, lastSign: WallTime
    ) {
        self.id = id
        self.name = name
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
        case id, name, presence, state, trust, protection, proven, addresses, discoveryInfo, sources, error, trustSource
        case trustEnd = "trustExpiresAt"
        case verified, nameConflict
        case firstSighting = "firstSeen"
        case lastSign = "lastSeen"
    }
}

extension Peer: Equatable {
    /// Peers are the same when their ids are.
    public static func == (lhs: Peer, rhs: Peer) -> Bool { lhs.id == rhs.id }
}
