public import FoundationEssentials

extension ControlAPI {
    /// One node with one identity, as the daemon sees it now. A value: equal and hashed by `id` alone.
    public struct Peer: Codable, Hashable, Sendable {
        /// Whether a peer is there.
        public enum Presence: String, Hashable, Sendable, CaseIterable {
            case nearby
            case away
        }

        /// 52 characters of base32.
        public let id: String
        /// A label, untrusted and not unique.
        public let name: String
        /// Whether it can be reached as far as the daemon knows.
        public let presence: Tolerant<Presence>
        /// How its connection stands.
        public let state: Tolerant<MemberState>
        /// What this machine thinks of it.
        public let trust: Tolerant<Trust>
        /// Of the present connection; `nil` without one.
        @ExplicitNull public var protection: Tolerant<Protection>?
        /// Whether it has ever proven its key to this daemon.
        public let proven: Bool
        /// Such as `10.0.0.7:47110` and `[fe80::1%eth0]:47110`.
        public let addresses: [String]
        /// The advertisement's pairs: public and untrusted.
        public let discoveryInfo: [String: String]
        /// Where its row comes from, such as `avahi`.
        public let sources: [String]
        /// Why it could not be reached when that was last tried, for a peer that the settings name or for which another key answers.
        @ReadableValue public var error: Failure?
        /// Who trusts or blocks it; absent where no decision was made.
        public let trustSource: Tolerant<TrustSource>?
        /// When its trust ends by itself.
        @ReadableValue public var trustExpiresAt: Date?
        /// What came of the last comparison of digits with it.
        public let verified: Tolerant<Verified>?
        /// Another peer that goes by the same name: one that is known here too, so that the name means neither, else a stranger beside a
        /// known one.
        public let nameConflict: String?
        /// When it was first met.
        @ReadableTime public var firstSeen: Date?
        /// When it was last heard of.
        @ReadableTime public var lastSeen: Date?

        /// A value from its parts.
        public init(
            id: String, name: String, presence: Tolerant<Presence>, state: Tolerant<MemberState>, trust: Tolerant<Trust>,
            protection: Tolerant<Protection>? = nil, proven: Bool, addresses: [String], discoveryInfo: [String: String],
            sources: [String], error: Failure? = nil, trustSource: Tolerant<TrustSource>? = nil, trustExpiresAt: Date? = nil,
            verified: Tolerant<Verified>? = nil, nameConflict: String? = nil, firstSeen: Date, lastSeen: Date
        ) {
            self.id = id
            self.name = name
            self.presence = presence
            self.state = state
            self.trust = trust
            self._protection = ExplicitNull(wrappedValue: protection)
            self.proven = proven
            self.addresses = addresses
            self.discoveryInfo = discoveryInfo
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
            case id, name, presence, state, trust, protection, proven, addresses
            case discoveryInfo = "discovery_info"
            case sources, error
            case trustSource = "trust_source"
            case trustExpiresAt = "trust_expires_at"
            case verified
            case nameConflict = "name_conflict"
            case firstSeen = "first_seen"
            case lastSeen = "last_seen"
        }
    }

    /// The answer of `GET /v1/peers`.
    public struct PeerList: Codable, Hashable, Sendable {
        /// In the daemon's order.
        @ReadableElements public var peers: [Peer]

        /// A value from its parts.
        public init(peers: [Peer]) {
            self._peers = ReadableElements(peers)
        }

        private enum CodingKeys: String, CodingKey {
            case peers
        }
    }

    /// The body of `PUT /v1/peers/{peer}/trust`.
    public struct TrustRequest: Codable, Hashable, Sendable {
        /// What to think of the peer from now on.
        public let trust: Tolerant<Trust>
        /// How long it is to be trusted; for good where `nil`.
        public let forSeconds: Double?
        /// Until when it is to be trusted, instead of for how long.
        public let expiresAt: Date?

        /// A value from its parts.
        public init(trust: Tolerant<Trust>, forSeconds: Double? = nil, expiresAt: Date? = nil) {
            self.trust = trust
            self.forSeconds = forSeconds
            self.expiresAt = expiresAt
        }

        private enum CodingKeys: String, CodingKey {
            case trust
            case forSeconds = "for_seconds"
            case expiresAt = "expires_at"
        }
    }
}

extension ControlAPI.Peer {
    /// Peers are the same when their ids are.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs.id == rhs.id }

    /// Hashes the id alone.
    public func hash(into hasher: inout Hasher) { hasher.combine(self.id) }
}
