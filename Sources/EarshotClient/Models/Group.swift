public import FoundationEssentials

extension ControlAPI {
    /// Peers that are one conversation.
    public struct Group: Codable, Hashable, Sendable {
        /// Whether this machine is in it already.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case joining, joined
        }

        /// What this machine may do in it: the creator alone renames it, dissolves it, and takes members out.
        public enum Role: String, Hashable, Sendable, CaseIterable {
            case creator, member
        }

        /// A UUID in lower case; the same on every member's machine.
        public let id: String
        /// A label, untrusted.
        public let name: String
        /// The peer id of who made it.
        public let creator: String
        /// Whether its creator alone lets others in.
        public let closed: Bool
        /// Whether its members may talk without TLS.
        public let unprotected: Bool
        /// Whether this machine is in it already.
        public let state: Tolerant<State>
        /// What this machine may do in it.
        public let role: Tolerant<Role>
        /// In the order in which they joined, this machine too.
        @ReadableElements public var members: [GroupMember]
        /// How many members its creator can still take out, 0 to 256; `nil` from an older daemon.
        public let removalsLeft: Int?
        /// By its creator's clock.
        @ReadableTime public var createdAt: Date?

        /// A value from its parts.
        public init(
            id: String, name: String, creator: String, closed: Bool, unprotected: Bool, state: Tolerant<State>, role: Tolerant<Role>,
            members: [GroupMember], removalsLeft: Int? = nil, createdAt: Date
        ) {
            self.id = id
            self.name = name
            self.creator = creator
            self.closed = closed
            self.unprotected = unprotected
            self.state = state
            self.role = role
            self._members = ReadableElements(members)
            self.removalsLeft = removalsLeft
            self._createdAt = ReadableTime(createdAt)
        }

        private enum CodingKeys: String, CodingKey {
            case id, name, creator, closed, unprotected, state, role, members
            case removalsLeft = "removals_left"
            case createdAt = "created_at"
        }
    }

    /// One of those that are in a group.
    public struct GroupMember: Codable, Hashable, Sendable {
        /// Whether it can be talked to now.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case notConnected = "not_connected"
            case connecting, connected, blocked, full
        }

        /// 52 characters of base32.
        public let peerID: String
        /// A label, untrusted.
        public let name: String
        /// This machine itself is always connected.
        public let state: Tolerant<State>
        /// Why it cannot be reached.
        @ReadableValue public var error: Failure?
        /// By its own clock.
        @ReadableTime public var joinedAt: Date?
        /// The peer id of who let it in.
        public let invitedBy: String

        /// A value from its parts.
        public init(peerID: String, name: String, state: Tolerant<State>, error: Failure? = nil, joinedAt: Date, invitedBy: String) {
            self.peerID = peerID
            self.name = name
            self.state = state
            self._error = ReadableValue(error)
            self._joinedAt = ReadableTime(joinedAt)
            self.invitedBy = invitedBy
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case name, state, error
            case joinedAt = "joined_at"
            case invitedBy = "invited_by"
        }
    }

    /// A group, and what it was called at the time.
    public struct GroupLabel: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        public let id: String
        /// A label, untrusted.
        public let name: String
        /// With an invitation: the peer id of who made it.
        public let creator: String?
        /// With an invitation: how many were in it.
        public let members: Int?

        /// A value from its parts.
        public init(id: String, name: String, creator: String? = nil, members: Int? = nil) {
            self.id = id
            self.name = name
            self.creator = creator
            self.members = members
        }

        private enum CodingKeys: String, CodingKey {
            case id, name, creator, members
        }
    }

    /// The answer of `GET /v1/groups`.
    public struct GroupList: Codable, Hashable, Sendable {
        /// In the order in which they were made, or joined.
        @ReadableElements public var groups: [Group]

        /// A value from its parts.
        public init(groups: [Group]) {
            self._groups = ReadableElements(groups)
        }

        private enum CodingKeys: String, CodingKey {
            case groups
        }
    }

    /// The body of `PATCH /v1/groups/{group}`.
    public struct GroupChange: Codable, Hashable, Sendable {
        /// 1 to 63 bytes, as a peer's name.
        public let name: String

        /// A value from its parts.
        public init(name: String) { self.name = name }

        private enum CodingKeys: String, CodingKey {
            case name
        }
    }

    /// The body of `POST /v1/groups`.
    public struct GroupRequest: Codable, Hashable, Sendable {
        /// 1 to 63 bytes, as a peer's name.
        public let name: String
        /// Whether its creator alone lets others in.
        public let closed: Bool?
        /// Whether its members may talk without TLS.
        public let unprotected: Bool?

        /// A value from its parts.
        public init(name: String, closed: Bool? = nil, unprotected: Bool? = nil) {
            self.name = name
            self.closed = closed
            self.unprotected = unprotected
        }

        private enum CodingKeys: String, CodingKey {
            case name, closed, unprotected
        }
    }

    /// The body of `POST /v1/groups/{group}/invitations`.
    public struct GroupInvitationRequest: Codable, Hashable, Sendable {
        /// Any forms of naming peers.
        public let peers: [String]
        /// At most 8 KiB.
        public let context: Base64Bytes?
        /// Seconds; 0 or less means the default of 30.
        public let timeoutSeconds: Double?

        /// A value from its parts.
        public init(peers: [String], context: Base64Bytes? = nil, timeoutSeconds: Double? = nil) {
            self.peers = peers
            self.context = context
            self.timeoutSeconds = timeoutSeconds
        }

        private enum CodingKeys: String, CodingKey {
            case peers, context
            case timeoutSeconds = "timeout_seconds"
        }
    }
}
