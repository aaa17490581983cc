public import EarshotWire

/// A set of peers that share one conversation.
public struct Group: Sendable, Hashable, Codable, Identifiable {
    /// Whether this machine is already in the group.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// A user here accepted an invitation to the group, and the inviter has not answered yet.
        case joining
        case joined
    }

    /// This machine's rights in the group.
    public enum Role: String, Sendable, Hashable, Codable, CaseIterable {
        /// The only member that may rename the group, dissolve it and remove members.
        case creator
        case member
    }

    /// A member of the group. This machine is a member too.
    public struct Member: Sendable, Hashable, Codable {
        /// Whether the member can be reached now.
        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            case notConnected = "not_connected"
            case connecting, connected
            /// A user here blocked the member: the daemon sends nothing to it and ignores what it sends.
            case blocked
            /// The group already has as many members as it can have.
            case full
        }

        /// The member's id.
        public let peerID: PeerID
        /// The member's display name: the last name that was proven here, or the name that it joined with. A label.
        public let name: String
        /// Whether the member can be reached now. This machine itself is always connected.
        public let state: State
        /// The reason why the member cannot be reached.
        public let error: Peer.Failure?
        /// The time at which the member joined, by its own clock.
        package let joined: WallTime
        /// The peer that let the member in.
        public let invitedBy: PeerID

        private enum CodingKeys: String, CodingKey {
            case peerID = "peerId"
            case name, state, error
            case joined = "joinedAt"
            case invitedBy
        }
    }

    /// The group's id, the same on every member's machine.
    public let id: GroupID
    /// The name that the creator gave the group.
    public let name: String
    /// The peer that made the group.
    public let creator: PeerID
    /// Whether only the creator may let others in.
    public let isClosed: Bool
    /// Whether members may talk without TLS, if their preferences agree.
    public let isUnprotected: Bool
    /// Whether this machine is already in the group.
    public let state: State
    /// This machine's rights in the group.
    public let role: Role
    /// The members, in the order in which they joined.
    public let members: [Member]
    /// The number of members that the creator can still remove, 0 to 256; `nil` in values that an earlier version encoded.
    public let removalsLeft: Int?
    /// The time at which the group was made, by its creator's clock.
    package let created: WallTime

    private enum CodingKeys: String, CodingKey {
        case id, name, creator, isClosed, isUnprotected, state, role, members, removalsLeft
        case created = "createdAt"
    }

    /// The id and name of the group, for display.
    public var label: GroupLabel { GroupLabel(id: self.id, name: self.name) }
}

/// A group's id, with the group's name at the time.
public struct GroupLabel: Sendable, Hashable, Codable {
    /// The group's id.
    public let id: GroupID
    /// The group's name: a label.
    public let name: String

    package init(id: GroupID, name: String) {
        self.id = id
        self.name = name
    }
}

/// A group as described by an invitation to it.
public struct InvitedGroup: Sendable, Hashable, Codable {
    /// The group's id.
    public let id: GroupID
    /// The group's name: a label.
    public let name: String
    /// The peer that made the group.
    public let creator: PeerID
    /// The number of members. If this machine is the invitee, it is not counted.
    public let members: Int

    package init(id: GroupID, name: String, creator: PeerID, members: Int) {
        self.id = id
        self.name = name
        self.creator = creator
        self.members = members
    }
}

/// The reason why this machine is no longer in a group.
public enum GroupEnd: String, Sendable, Hashable, Codable, CaseIterable {
    case left, removed, dissolved
}

/// A group as stored on disk.
package struct StoredGroup: Sendable, Hashable {
    package let charter: GroupCharter
    /// The records of the group, in any order.
    package var records: [GroupRecord]
    /// Whether the group is dissolved, and is kept only to tell other members so.
    package var isOver: Bool

    package init(charter: GroupCharter, records: [GroupRecord], isOver: Bool) {
        self.charter = charter
        self.records = records
        self.isOver = isOver
    }

    package var id: GroupID { self.charter.id }
}

/// A request about groups from a user or a program. The request names a group by its id, by 8 or more of the id's first characters, or by
/// the group's name.
package enum GroupRequest: Sendable, Hashable {
    /// Answered with the group.
    case create(name: String, isClosed: Bool, isUnprotected: Bool)
    /// Answered with the group.
    case rename(String, to: String)
    case leave(String)
    case dissolve(String)
    /// Removes a member; with `withInvited`, also all members that came in through that member. Answered with the group.
    case remove(String, peer: String, withInvited: Bool)
    /// Answered with the invitations, one per peer, in the order of `peers`. Invitations of peers that are already members are accepted.
    case invite(String, peers: [String], context: [UInt8], timeout: Duration?)
}

/// The id of a pending signature or check: a counter.
package struct SignatureID: Sendable, Hashable {
    package let number: UInt64
}

/// The key with which this machine proves its identity.
package struct OwnKey: Sendable, Hashable {
    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    package let scheme: SignatureScheme

    package init(publicKey: [UInt8], scheme: SignatureScheme) {
        self.publicKey = publicKey
        self.scheme = scheme
    }
}
