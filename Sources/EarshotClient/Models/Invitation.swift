public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// An invitation of one peer to another, to a session or a group.
    public struct Invitation: Codable, Hashable, Sendable {
        /// The state of an invitation; all states but `pending` are final.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case pending
            case accepted
            case declined
            case timedOut = "timed_out"
            case cancelled
            case failed
        }

        /// The invitation's id: a UUID in lower case.
        public let id: InvitationID
        /// The direction; this machine sends `outgoing` invitations.
        public let direction: Tolerant<Direction>
        /// The other peer's id; ``PeerID/unprovenDevice``, which is `null` in JSON, for a LocalSend device that shows no certificate.
        public let peerID: PeerID
        /// The other peer's display name, untrusted.
        public let peerName: String
        /// The inviter's context: opaque bytes, at most 8 KiB, untrusted.
        public let context: Base64Bytes
        /// The state of the invitation.
        public let state: Tolerant<State>
        /// Why the invitation failed, if that is known.
        @ReadableValue public var error: Failure?
        /// When the invitation was created or received.
        @ReadableTime public var createdAt: Date?
        /// When the invitation times out.
        @ReadableTime public var expiresAt: Date?
        /// The session that resulted from the invitation.
        public let sessionID: SessionID?
        /// The group of the invitation; `nil` for an invitation to a session of two.
        @ExplicitNull public var group: GroupLabel?
        /// The files or the text that a LocalSend device offers; `nil` for all other invitations. They never become a session.
        public let offer: [OfferedFile]?

        /// Creates a value from its parts.
        public init(
            id: InvitationID, direction: Tolerant<Direction>, peerID: PeerID, peerName: String, context: Base64Bytes,
            state: Tolerant<State>,
            error: Failure? = nil, createdAt: Date, expiresAt: Date, sessionID: SessionID? = nil, group: GroupLabel? = nil,
            offer: [OfferedFile]? = nil
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
            self.offer = offer
        }

        private enum CodingKeys: String, CodingKey {
            case id, direction
            case peerID = "peer_id"
            case peerName = "peer_name"
            case context, state, error
            case createdAt = "created_at"
            case expiresAt = "expires_at"
            case sessionID = "session_id"
            case group, offer
        }
    }

    /// A file that a LocalSend device offers.
    public struct OfferedFile: Codable, Hashable, Sendable {
        /// The name, which may be a relative path with `/`; untrusted, and must be checked before it is used as a path.
        public let name: String
        /// The size in bytes.
        public let size: UInt64
        /// The content type, untrusted.
        public let contentType: String

        /// Creates a value from its parts.
        public init(name: String, size: UInt64, contentType: String) {
            self.name = name
            self.size = size
            self.contentType = contentType
        }

        private enum CodingKeys: String, CodingKey {
            case name, size
            case contentType = "content_type"
        }
    }

    /// The answer of `GET /v1/invitations`.
    public struct InvitationList: Codable, Hashable, Sendable {
        /// The pending invitations, or all if requested.
        @ReadableElements public var invitations: [Invitation]

        /// Creates a value from its parts.
        public init(invitations: [Invitation]) {
            self._invitations = ReadableElements(invitations)
        }

        private enum CodingKeys: String, CodingKey {
            case invitations
        }
    }

    /// The body of `POST /v1/invitations`.
    public struct InvitationRequest: Codable, Hashable, Sendable {
        /// The peer, in any form of naming a peer.
        public let peer: String
        /// The context, at most 8 KiB.
        public let context: Base64Bytes?
        /// The timeout in seconds, at most 86,400; 0 or less means the default of 30.
        public let timeoutSeconds: Double?

        /// Creates a value from its parts.
        public init(peer: String, context: Base64Bytes? = nil, timeout: Duration? = nil) {
            self.peer = peer
            self.context = context
            self.timeoutSeconds = timeout?.seconds
        }

        private enum CodingKeys: String, CodingKey {
            case peer, context
            case timeoutSeconds = "timeout_seconds"
        }
    }

    /// The body of `POST /v1/invitations/{id}/response`.
    public struct InvitationResponse: Codable, Hashable, Sendable {
        /// An answer to an invitation.
        public enum Decision: String, Hashable, Sendable, CaseIterable {
            case accept
            case reject
            case block
        }

        /// The answer.
        public let decision: Tolerant<Decision>
        /// With `accept`: whether to trust the peer from now on.
        public let always: Bool?

        /// Creates a value from its parts.
        public init(decision: Tolerant<Decision>, always: Bool? = nil) {
            self.decision = decision
            self.always = always
        }

        private enum CodingKeys: String, CodingKey {
            case decision, always
        }
    }
}
