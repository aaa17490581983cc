public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A session: peers that have agreed to exchange messages.
    public struct Session: Codable, Hashable, Sendable {
        /// The session's id: a UUID in lower case.
        public let id: SessionID
        /// The members except this machine.
        @ReadableElements public var members: [Member]
        /// When the session was agreed.
        @ReadableTime public var createdAt: Date?

        /// Creates a value from its parts.
        public init(id: SessionID, members: [Member], createdAt: Date) {
            self.id = id
            self._members = ReadableElements(members)
            self._createdAt = ReadableTime(createdAt)
        }

        private enum CodingKeys: String, CodingKey {
            case id, members
            case createdAt = "created_at"
        }
    }

    /// The other member of a session.
    public struct Member: Codable, Hashable, Sendable {
        /// The member's peer id: 52 characters of base32.
        public let peerID: PeerID
        /// The member's display name, untrusted.
        public let name: String
        /// The state of the connection.
        public let state: Tolerant<MemberState>
        /// The protection of the current connection; `nil` without a connection.
        @ExplicitNull public var protection: Tolerant<Protection>?

        /// Creates a value from its parts.
        public init(peerID: PeerID, name: String, state: Tolerant<MemberState>, protection: Tolerant<Protection>? = nil) {
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
        /// The sessions, in the daemon's order.
        @ReadableElements public var sessions: [Session]

        /// Creates a value from its parts.
        public init(sessions: [Session]) {
            self._sessions = ReadableElements(sessions)
        }

        private enum CodingKeys: String, CodingKey {
            case sessions
        }
    }
}
