package import FoundationEssentials

extension ControlAPI {
    /// Peers that have agreed to talk.
    package struct Session: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        package let id: String
        /// The members but for this machine.
        @ReadableElements package var members: [Member]
        /// When it was agreed.
        @ReadableTime package var createdAt: Date?

        /// A value from its parts.
        package init(id: String, members: [Member], createdAt: Date) {
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
    package struct Member: Codable, Hashable, Sendable {
        /// 52 characters of base32.
        package let peerID: String
        /// A label, untrusted.
        package let name: String
        /// How its connection stands.
        package let state: Tolerant<MemberState>
        /// Of the present connection; `nil` without one.
        @ExplicitNull package var protection: Tolerant<Protection>?

        /// A value from its parts.
        package init(peerID: String, name: String, state: Tolerant<MemberState>, protection: Tolerant<Protection>? = nil) {
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
    package struct SessionList: Codable, Hashable, Sendable {
        /// In the daemon's order.
        @ReadableElements package var sessions: [Session]

        /// A value from its parts.
        package init(sessions: [Session]) {
            self._sessions = ReadableElements(sessions)
        }

        private enum CodingKeys: String, CodingKey {
            case sessions
        }
    }
}
