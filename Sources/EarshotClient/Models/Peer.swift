public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A peer, as the daemon knows it now. Two values are equal if all their fields are; to find the same peer again, compare ``id``.
    public struct Peer: Codable, Hashable, Identifiable, Sendable {
        /// Whether a peer is present.
        public enum Presence: String, Hashable, Sendable, CaseIterable {
            case nearby
            case away
        }

        /// The protocol that a peer speaks.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// Earshot's own.
            case earshot
            /// LocalSend's: a device that exchanges files and texts, and has no session.
            case localsend
        }

        /// The peer's id: 52 characters of base32, after `LS-` for a LocalSend device.
        public let id: PeerID
        /// The name that the daemon shows: the alias that a user has given, else the peer's display name, untrusted and not unique.
        public let name: String
        /// The peer's display name, if ``name`` is an alias.
        public let displayName: String?
        /// Whether the peer is present, as far as the daemon knows.
        public let presence: Tolerant<Presence>
        /// The state of the connection.
        public let state: Tolerant<MemberState>
        /// The trust in the peer.
        public let trust: Tolerant<Trust>
        /// The protection of the current connection; `nil` without a connection.
        @ExplicitNull public var protection: Tolerant<Protection>?
        /// Whether the peer has ever proven its key to this daemon.
        public let proven: Bool
        /// The addresses, such as `10.0.0.7:47110` and `[fe80::1%eth0]:47110`.
        public let addresses: [String]
        /// The advertisement's pairs, public and untrusted.
        public let discoveryInfo: [String: String]
        /// The protocol of the peer; `nil` from an older daemon, which knows only Earshot's.
        public let kind: Tolerant<Kind>?
        /// The fingerprint of a LocalSend device, as other LocalSend programs show it: the SHA-256 of its certificate, 64 hex digits.
        public let fingerprint: String?
        /// The sources of this row, such as `avahi`.
        public let sources: [String]
        /// Why the last attempt to reach the peer failed, for a peer that the settings name or whose address answers with another key.
        @ReadableValue public var error: Failure?
        /// The source of the trust or block; absent without a decision.
        public let trustSource: Tolerant<TrustSource>?
        /// When the trust expires.
        @ReadableValue public var trustExpiresAt: Date?
        /// The result of the last comparison of digits.
        public let verified: Tolerant<Verified>?
        /// Another peer with the same name. If both peers are known, the name is ambiguous. Otherwise only one of them is known.
        public let nameConflict: PeerID?
        /// When the peer was first seen.
        @ReadableTime public var firstSeen: Date?
        /// When the peer was last seen.
        @ReadableTime public var lastSeen: Date?

        /// Creates a value from its parts.
        public init(
            id: PeerID, name: String, displayName: String? = nil, presence: Tolerant<Presence>, state: Tolerant<MemberState>,
            trust: Tolerant<Trust>,
            protection: Tolerant<Protection>? = nil, proven: Bool, addresses: [String], discoveryInfo: [String: String],
            sources: [String], error: Failure? = nil, trustSource: Tolerant<TrustSource>? = nil, trustExpiresAt: Date? = nil,
            verified: Tolerant<Verified>? = nil, nameConflict: PeerID? = nil, kind: Tolerant<Kind>? = nil,
            fingerprint: String? = nil, firstSeen: Date, lastSeen: Date
        ) {
            self.id = id
            self.name = name
            self.displayName = displayName
            self.presence = presence
            self.state = state
            self.trust = trust
            self._protection = ExplicitNull(wrappedValue: protection)
            self.proven = proven
            self.addresses = addresses
            self.discoveryInfo = discoveryInfo
            self.kind = kind
            self.fingerprint = fingerprint
            self.sources = sources
            self._error = ReadableValue(error)
            self.trustSource = trustSource
            self._trustExpiresAt = ReadableValue(trustExpiresAt)
            self.verified = verified
            self.nameConflict = nameConflict
            self._firstSeen = ReadableTime(firstSeen)
            self._lastSeen = ReadableTime(lastSeen)
        }

        private enum CodingKeys: String, CodingKey {
            case id, name
            case displayName = "display_name"
            case presence, state, trust, protection, proven, addresses
            case discoveryInfo = "discovery_info"
            case kind, fingerprint, sources, error
            case trustSource = "trust_source"
            case trustExpiresAt = "trust_expires_at"
            case verified
            case nameConflict = "name_conflict"
            case firstSeen = "first_seen"
            case lastSeen = "last_seen"
        }
    }

    /// The body of `PUT /v1/peers/{peer}/alias`.
    public struct AliasRequest: Codable, Hashable, Sendable {
        /// The alias: 1 to 63 bytes without control characters, as a display name.
        public let alias: String

        /// Creates a value from its parts.
        public init(alias: String) { self.alias = alias }

        private enum CodingKeys: String, CodingKey {
            case alias
        }
    }

    /// The answer of `GET /v1/peers`.
    public struct PeerList: Codable, Hashable, Sendable {
        /// The peers, in the daemon's order.
        @ReadableElements public var peers: [Peer]

        /// Creates a value from its parts.
        public init(peers: [Peer]) {
            self._peers = ReadableElements(peers)
        }

        private enum CodingKeys: String, CodingKey {
            case peers
        }
    }

    /// The body of `PUT /v1/peers/{peer}/trust`.
    public struct TrustRequest: Codable, Hashable, Sendable {
        /// The new trust in the peer.
        public let trust: Tolerant<Trust>
        /// How long the trust lasts, in seconds; `nil` for permanent trust.
        public let forSeconds: Double?
        /// When the trust expires, instead of how long it lasts.
        public let expiresAt: Date?

        /// Creates a value from its parts.
        public init(trust: Tolerant<Trust>, lasting time: Duration? = nil, expiresAt: Date? = nil) {
            self.trust = trust
            self.forSeconds = time?.seconds
            self.expiresAt = expiresAt
        }

        private enum CodingKeys: String, CodingKey {
            case trust
            case forSeconds = "for_seconds"
            case expiresAt = "expires_at"
        }
    }
}
