internal import Crypto
internal import NIOCore

/// A tag type, see ``InvitationKind``.
public enum GroupKind: Sendable {}
/// The id of a group: a digest of its charter.
public typealias GroupID = WireID<GroupKind>

/// A tag type, see ``InvitationKind``.
package enum GroupRecordHashKind: Sendable {}
/// The hash of a group's record: a digest of its signed bytes, and so the same however often it is signed.
package typealias GroupRecordHash = WireID<GroupRecordHashKind>

extension GroupRecordHash {
    /// Returns the digest of the records that a side holds of a group, as ``GroupName`` carries it: the start of the SHA-256 of the
    /// concatenated hashes of all records, in ascending order. The order of the argument does not matter.
    package static func digest(of hashes: [GroupRecordHash]) -> GroupRecordHash {
        let sorted = hashes.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
        return GroupRecord.hash(of: sorted.flatMap(\.bytes))
    }
}

/// One of the signed records that make up a group (the DocC article "Groups"). Records merge in any order, over any path: the membership
/// follows from the set of records alone.
package enum GroupRecord: Sendable, Hashable {
    case charter(GroupCharter)
    case terms(GroupTerms)
    case seat(GroupSeat)
    case leave(GroupLeave)
    case removal(GroupRemoval)

    /// The numbers of the kinds on the wire, and in signed bytes.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case charter = 1
        case terms = 2
        case seat = 3
        case leave = 4
        case removal = 5
    }

    /// The role in which a key signs.
    package enum Role: UInt8, Sendable, Hashable, CaseIterable {
        /// The peer that the record is about.
        case peer = 1
        /// The member that admitted the peer.
        case voucher = 2
        /// The group's creator.
        case creator = 3
    }

    package var kind: Kind {
        switch self {
        case .charter: .charter
        case .terms: .terms
        case .seat: .seat
        case .leave: .leave
        case .removal: .removal
        }
    }

    /// The prefix of the signed bytes of every group signature, which no proof's input begins with.
    package static let label = "earshot/1 group"

    /// Returns the record's hash in a group.
    package func hash(in group: GroupID) -> GroupRecordHash {
        switch self {
        case .charter(let charter): charter.hash
        case .terms(let terms): terms.hash(in: group)
        case .seat(let seat): seat.hash(in: group)
        case .leave(let leave): leave.hash(in: group)
        case .removal(let removal): removal.hash(in: group)
        }
    }

    /// Returns the signed bytes: the label, the kind, the role, the group's id and the fields as on the wire.
    static func signedBytes(
        _ kind: Kind, _ role: Role, in group: GroupID, _ fields: (inout PayloadWriter) throws(WireError) -> Void
    ) throws(WireError) -> [UInt8] {
        var writer = PayloadWriter(.groupRecord)
        try fields(&writer)
        return Array(Self.label.utf8) + [kind.rawValue, role.rawValue] + group.bytes + Array(writer.buffer.readableBytesView)
    }

    /// Returns the hash of signed bytes, or of other bytes that identify a record.
    static func hash(of bytes: [UInt8]) -> GroupRecordHash { GroupRecordHash(startOf: SHA256.hash(data: bytes)) }
}

/// The fixed properties of a group: its id is a digest of them.
package struct GroupCharter: Sendable, Hashable {
    /// `WireLimits.groupNonce` random bytes, so that one peer can create any number of groups.
    package let nonce: [UInt8]
    /// The creator's SubjectPublicKeyInfo, DER.
    package let creatorKey: [UInt8]
    package let creatorScheme: SignatureScheme
    /// Whether only the creator admits others.
    package let isClosed: Bool
    /// Whether members may talk without TLS, if their preferences allow that.
    package let isUnprotected: Bool
    /// Milliseconds since 1970 by the creator's clock.
    package let createdAtMilliseconds: Int64
    /// The group's id: the first 16 bytes of the SHA-256 of the label `earshot/1 group id` and of the charter, each after its length.
    package let id: GroupID
    /// The creator's id.
    package let creator: PeerID
    package let hash: GroupRecordHash

    /// The prefix of the digest that becomes the id.
    package static let label = "earshot/1 group id"

    /// Creates a charter from its fields.
    /// - Throws: `malformed` for a field beyond its limits.
    package init(
        nonce: [UInt8], creatorKey: [UInt8], creatorScheme: SignatureScheme, isClosed: Bool = false, isUnprotected: Bool = false,
        createdAtMilliseconds: Int64
    ) throws(WireError) {
        self.nonce = nonce
        self.creatorKey = creatorKey
        self.creatorScheme = creatorScheme
        self.isClosed = isClosed
        self.isUnprotected = isUnprotected
        self.createdAtMilliseconds = createdAtMilliseconds
        self.creator = PeerID(subjectPublicKeyInfo: creatorKey)
        var writer = PayloadWriter(.groupRecord)
        try Self.write(
            nonce: nonce, creatorKey: creatorKey, creatorScheme: creatorScheme, isClosed: isClosed, isUnprotected: isUnprotected,
            createdAtMilliseconds: createdAtMilliseconds, into: &writer)
        let fields = Array(writer.buffer.readableBytesView)
        let digest = SHA256.ofParts([Array(Self.label.utf8), fields])
        self.id = GroupID(startOf: digest)
        self.hash = GroupRecordHash(startOf: digest)
    }

    private static func write(
        nonce: [UInt8], creatorKey: [UInt8], creatorScheme: SignatureScheme, isClosed: Bool, isUnprotected: Bool,
        createdAtMilliseconds: Int64, into writer: inout PayloadWriter
    ) throws(WireError) {
        try writer.bytes("nonce", nonce, count: WireLimits.groupNonce)
        try writer.key("creator_key", creatorKey, creatorScheme)
        writer.integer((isClosed ? Self.closedFlag : 0) | (isUnprotected ? Self.unprotectedFlag : 0))
        try writer.integer("created_at", createdAtMilliseconds, in: WireLimits.sentAtMilliseconds)
    }

    private static let closedFlag: UInt8 = 1
    private static let unprotectedFlag: UInt8 = 2

    func write(into writer: inout PayloadWriter) throws(WireError) {
        try Self.write(
            nonce: self.nonce, creatorKey: self.creatorKey, creatorScheme: self.creatorScheme, isClosed: self.isClosed,
            isUnprotected: self.isUnprotected, createdAtMilliseconds: self.createdAtMilliseconds, into: &writer)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        let nonce = try reader.bytes("nonce", count: WireLimits.groupNonce)
        let (key, scheme) = try reader.key("creator_key")
        let flags = try reader.integer("flags", in: 0...(Self.closedFlag | Self.unprotectedFlag))
        try self.init(
            nonce: nonce, creatorKey: key, creatorScheme: scheme, isClosed: flags & Self.closedFlag != 0,
            isUnprotected: flags & Self.unprotectedFlag != 0,
            createdAtMilliseconds: try reader.integer("created_at", in: WireLimits.sentAtMilliseconds))
    }
}
