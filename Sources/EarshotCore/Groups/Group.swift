public import EarshotWire

/// Peers that are one conversation.
public struct Group: Sendable, Hashable, Codable, Identifiable {
    /// Whether this machine is in it already.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// An invitation to it was accepted here, and the inviter has not answered yet.
        case joining
        case joined
    }

    /// What this machine may do in it.
    public enum Role: String, Sendable, Hashable, Codable, CaseIterable {
        /// It alone renames the group, dissolves it, and takes members out.
        case creator
        case member
    }

    /// One of those that are in it, this machine too.
    public struct Member: Sendable, Hashable, Codable {
        /// Whether it can be talked to now.
        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            case notConnected = "not_connected"
            case connecting, connected
            /// A person here has blocked it: nothing is sent to it, nor heard from it.
            case blocked
            /// There is no room for it: the group has as many members as it can have.
            case full
        }

        /// Who it is.
        public let peerID: PeerID
        /// Its display name, the last that was proven here, or that it has joined by: a label.
        public let name: String
        /// Whether it can be talked to now; this machine itself is always connected.
        public let state: State
        /// Why it cannot be reached.
        public let error: Peer.Failure?
        /// When it joined, by its own clock.
        package let joined: WallTime
        /// Who let it in.
        public let invitedBy: PeerID

        private enum CodingKeys: String, CodingKey {
            case peerID = "peerId"
            case name, state, error
            case joined = "joinedAt"
            case invitedBy
        }
    }

    /// The same on every member's machine.
    public let id: GroupID
    /// What its creator calls it.
    public let name: String
    /// Who made it.
    public let creator: PeerID
    /// Whether its creator alone lets others in.
    public let isClosed: Bool
    /// Whether its members may talk without TLS, where their preferences are so.
    public let isUnprotected: Bool
    /// Whether this machine is in it already.
    public let state: State
    /// What this machine may do in it.
    public let role: Role
    /// In the order in which they joined.
    public let members: [Member]
    /// How many members its creator can still take out, 0 to 256; `nil` in what an earlier version has encoded.
    public let removalsLeft: Int?
    /// When it was made, by its creator's clock.
    package let created: WallTime

    private enum CodingKeys: String, CodingKey {
        case id, name, creator, isClosed, isUnprotected, state, role, members, removalsLeft
        case created = "createdAt"
    }

    /// What tells it from others for a person.
    public var label: GroupLabel { GroupLabel(id: self.id, name: self.name) }
}

/// A group, and what it was called at the time.
public struct GroupLabel: Sendable, Hashable, Codable {
    /// Which group.
    public let id: GroupID
    /// Its name: a label.
    public let name: String

    package init(id: GroupID, name: String) {
        self.id = id
        self.name = name
    }
}

/// A group as an invitation to it says.
public struct InvitedGroup: Sendable, Hashable, Codable {
    /// Which group.
    public let id: GroupID
    /// Its name: a label.
    public let name: String
    /// Who made it.
    public let creator: PeerID
    /// How many are in it, this machine not counted where it is invited.
    public let members: Int

    package init(id: GroupID, name: String, creator: PeerID, members: Int) {
        self.id = id
        self.name = name
        self.creator = creator
        self.members = members
    }
}

/// Why this machine is not in a group any more.
public enum GroupEnd: String, Sendable, Hashable, Codable, CaseIterable {
    case left, removed, dissolved
}

/// A group as it is kept.
package struct StoredGroup: Sendable, Hashable {
    package let charter: GroupCharter
    /// The records that are held, in any order.
    package var records: [GroupRecord]
    /// Whether it is kept only for others to hear that it is dissolved.
    package var isOver: Bool

    package init(charter: GroupCharter, records: [GroupRecord], isOver: Bool) {
        self.charter = charter
        self.records = records
        self.isOver = isOver
    }

    package var id: GroupID { self.charter.id }
}

/// What persons and programs ask of groups. A group is named by its id, 8 or more of its first characters, or its name.
package enum GroupRequest: Sendable, Hashable {
    /// Answers the group.
    case create(name: String, isClosed: Bool, isUnprotected: Bool)
    /// Answers the group.
    case rename(String, to: String)
    case leave(String)
    case dissolve(String)
    /// Take a member out; `withInvited` also all that came in through it. Answers the group.
    case remove(String, peer: String, withInvited: Bool)
    /// Answers the invitations, one a peer, in their order: members' are accepted.
    case invite(String, peers: [String], context: [UInt8], timeout: Duration?)
}

/// Names something that is to be signed, or checked, for as long as that is under way: a counter.
package struct SignatureID: Sendable, Hashable {
    package let number: UInt64
}

/// The key that this machine proves itself by.
package struct OwnKey: Sendable, Hashable {
    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    package let scheme: SignatureScheme

    package init(publicKey: [UInt8], scheme: SignatureScheme) {
        self.publicKey = publicKey
        self.scheme = scheme
    }
}
