public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A group: a conversation of several peers.
    public struct Group: Codable, Hashable, Sendable {
        /// Whether this machine is a member already.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case joining, joined
        }

        /// This machine's role. Only the creator renames the group, dissolves it, and removes members.
        public enum Role: String, Hashable, Sendable, CaseIterable {
            case creator, member
        }

        /// The group's id: a UUID in lower case, the same on every member's machine.
        public let id: GroupID
        /// The group's name, untrusted.
        public let name: String
        /// The creator's peer id.
        public let creator: PeerID
        /// Whether only the creator can invite others.
        public let closed: Bool
        /// Whether members may connect without TLS.
        public let unprotected: Bool
        /// Whether this machine is a member already.
        public let state: Tolerant<State>
        /// This machine's role.
        public let role: Tolerant<Role>
        /// The members in the order in which they joined, including this machine.
        @ReadableElements public var members: [GroupMember]
        /// The number of members that the creator can still remove, 0 to 256; `nil` from an older daemon.
        public let removalsLeft: Int?
        /// The time of creation, by the creator's clock.
        @ReadableTime public var createdAt: Date?

        /// Creates a value from its parts.
        public init(
            id: GroupID, name: String, creator: PeerID, closed: Bool, unprotected: Bool, state: Tolerant<State>, role: Tolerant<Role>,
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

    /// A member of a group.
    public struct GroupMember: Codable, Hashable, Sendable {
        /// Whether the member can be reached.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case notConnected = "not_connected"
            case connecting, connected, blocked, full
        }

        /// The member's peer id: 52 characters of base32.
        public let peerID: PeerID
        /// The member's display name, untrusted.
        public let name: String
        /// Whether the member is connected; this machine always is.
        public let state: Tolerant<State>
        /// Why the member cannot be reached.
        @ReadableValue public var error: Failure?
        /// The time of joining, by the member's clock.
        @ReadableTime public var joinedAt: Date?
        /// The inviter's peer id.
        public let invitedBy: PeerID

        /// Creates a value from its parts.
        public init(peerID: PeerID, name: String, state: Tolerant<State>, error: Failure? = nil, joinedAt: Date, invitedBy: PeerID) {
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

    /// A reference to a group, with its name at that time.
    public struct GroupLabel: Codable, Hashable, Sendable {
        /// The group's id: a UUID in lower case.
        public let id: GroupID
        /// The group's name, untrusted.
        public let name: String
        /// With an invitation: the creator's peer id.
        public let creator: PeerID?
        /// With an invitation: the number of members.
        public let members: Int?

        /// Creates a value from its parts.
        public init(id: GroupID, name: String, creator: PeerID? = nil, members: Int? = nil) {
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
        /// The groups in the order in which they were created or joined.
        @ReadableElements public var groups: [Group]

        /// Creates a value from its parts.
        public init(groups: [Group]) {
            self._groups = ReadableElements(groups)
        }

        private enum CodingKeys: String, CodingKey {
            case groups
        }
    }

    /// The body of `PATCH /v1/groups/{group}`.
    public struct GroupChange: Codable, Hashable, Sendable {
        /// The new name: 1 to 63 bytes, as for a peer's name.
        public let name: String

        /// Creates a value from its parts.
        public init(name: String) { self.name = name }

        private enum CodingKeys: String, CodingKey {
            case name
        }
    }

    /// The body of `POST /v1/groups`.
    public struct GroupRequest: Codable, Hashable, Sendable {
        /// The group's name: 1 to 63 bytes, as for a peer's name.
        public let name: String
        /// Whether only the creator can invite others.
        public let closed: Bool?
        /// Whether members may connect without TLS.
        public let unprotected: Bool?

        /// Creates a value from its parts.
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
        /// The peers, in any form of naming a peer.
        public let peers: [String]
        /// The context, at most 8 KiB.
        public let context: Base64Bytes?
        /// The timeout in seconds, at most 86,400; 0 or less means the default of 30.
        public let timeoutSeconds: Double?

        /// Creates a value from its parts.
        public init(peers: [String], context: Base64Bytes? = nil, timeout: Duration? = nil) {
            self.peers = peers
            self.context = context
            self.timeoutSeconds = timeout?.seconds
        }

        private enum CodingKeys: String, CodingKey {
            case peers, context
            case timeoutSeconds = "timeout_seconds"
        }
    }
}
