public import FoundationEssentials

extension ControlAPI {
    /// Peers that have agreed to talk.
    public struct Session: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        public let id: String
        /// The members but for this machine.
        @ReadableElements public var members: [Member]
        /// When it was agreed.
        @ReadableTime public var createdAt: Date?

        /// A value from its parts.
        public init(id: String, members: [Member], createdAt: Date) {
            self.id = id
            self._members = ReadableElements(members)
            self._createdAt = ReadableTime(createdAt)
        }

        private enum CodingKeys: String, CodingKey {
            case id, members
            case createdAt = "created_at"
        }
    }

    /// The other side of a session.
    public struct Member: Codable, Hashable, Sendable {
        /// 52 characters of base32.
        public let peerID: String
        /// A label, untrusted.
        public let name: String
        /// How its connection stands.
        public let state: Tolerant<MemberState>
        /// Of the present connection; `nil` without one.
        @ExplicitNull public var protection: Tolerant<Protection>?

        /// A value from its parts.
        public init(peerID: String, name: String, state: Tolerant<MemberState>, protection: Tolerant<Protection>? = nil) {
            self.peerID = peerID
            self.name = name
            self.state = state
            self._protection = ExplicitNull(wrappedValue: protection)
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case name, state, protection
        }
    }

    /// The answer of `GET /v1/sessions`.
    public struct SessionList: Codable, Hashable, Sendable {
        /// In the daemon's order.
        @ReadableElements public var sessions: [Session]

        /// A value from its parts.
        public init(sessions: [Session]) {
            self._sessions = ReadableElements(sessions)
        }

        private enum CodingKeys: String, CodingKey {
            case sessions
        }
    }
}
