public import FoundationEssentials

extension ControlAPI {
    /// One peer's request to another to join a session.
    public struct Invitation: Codable, Hashable, Sendable {
        /// How an invitation stands; all but `pending` are final.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case pending
            case accepted
            case declined
            case timedOut = "timed_out"
            case cancelled
            case failed
        }

        /// A UUID in lower case.
        public let id: String
        /// Who invites: `outgoing` is this machine.
        public let direction: Tolerant<Direction>
        /// The other side.
        public let peerID: String
        /// A label, untrusted.
        public let peerName: String
        /// Opaque bytes of the inviter, at most 8 KiB; untrusted.
        public let context: Base64Bytes
        /// How it stands.
        public let state: Tolerant<State>
        /// Why, where that is known.
        @ReadableValue public var error: Failure?
        /// When it was made, or came in.
        @ReadableTime public var createdAt: Date?
        /// When it times out.
        @ReadableTime public var expiresAt: Date?
        /// The session that came of it.
        public let sessionID: String?
        /// The group that it is to; `nil` for one to a session of two.
        @ExplicitNull public var group: GroupLabel?

        /// A value from its parts.
        public init(
            id: String, direction: Tolerant<Direction>, peerID: String, peerName: String, context: Base64Bytes, state: Tolerant<State>,
            error: Failure? = nil, createdAt: Date, expiresAt: Date, sessionID: String? = nil, group: GroupLabel? = nil
        ) {
            self.id = id
            self.direction = direction
            self.peerID = peerID
            self.peerName = peerName
            self.context = context
            self.state = state
            self._error = ReadableValue(error)
            self._createdAt = ReadableTime(createdAt)
            self._expiresAt = ReadableTime(expiresAt)
            self.sessionID = sessionID
            self._group = ExplicitNull(wrappedValue: group)
        }

        private enum CodingKeys: String, CodingKey {
            case id, direction
            case peerID = "peer_id"
            case peerName = "peer_name"
            case context, state, error
            case createdAt = "created_at"
            case expiresAt = "expires_at"
            case sessionID = "session_id"
            case group
        }
    }

    /// The answer of `GET /v1/invitations`.
    public struct InvitationList: Codable, Hashable, Sendable {
        /// The pending ones unless all were asked for.
        @ReadableElements public var invitations: [Invitation]

        /// A value from its parts.
        public init(invitations: [Invitation]) {
            self._invitations = ReadableElements(invitations)
        }

        private enum CodingKeys: String, CodingKey {
            case invitations
        }
    }

    /// The body of `POST /v1/invitations`.
    public struct InvitationRequest: Codable, Hashable, Sendable {
        /// Any form of naming a peer.
        public let peer: String
        /// At most 8 KiB.
        public let context: Base64Bytes?
        /// Seconds; 0 or less means the default of 30.
        public let timeoutSeconds: Double?

        /// A value from its parts.
        public init(peer: String, context: Base64Bytes? = nil, timeoutSeconds: Double? = nil) {
            self.peer = peer
            self.context = context
            self.timeoutSeconds = timeoutSeconds
        }

        private enum CodingKeys: String, CodingKey {
            case peer, context
            case timeoutSeconds = "timeout_seconds"
        }
    }

    /// The body of `POST /v1/invitations/{id}/response`.
    public struct InvitationResponse: Codable, Hashable, Sendable {
        /// A person's answer to an invitation.
        public enum Decision: String, Hashable, Sendable, CaseIterable {
            case accept
            case reject
            case block
        }

        /// The answer.
        public let decision: Tolerant<Decision>
        /// With `accept`: trust the peer from now on.
        public let always: Bool?

        /// A value from its parts.
        public init(decision: Tolerant<Decision>, always: Bool? = nil) {
            self.decision = decision
            self.always = always
        }

        private enum CodingKeys: String, CodingKey {
            case decision, always
        }
    }
}
