internal import Crypto
internal import NIOCore

/// See ``InvitationKind``.
public enum GroupKind: Sendable {}
/// Names one group: a digest of its charter.
public typealias GroupID = WireID<GroupKind>

/// See ``InvitationKind``.
package enum GroupRecordHashKind: Sendable {}
/// Tells one record of a group from the others: a digest of what is signed of it, and so the same however often it is signed.
package typealias GroupRecordHash = WireID<GroupRecordHashKind>

extension GroupRecordHash {
    /// What a side holds of a group, as ``GroupName`` tells it: the start of the SHA-256 of the hashes of all records, in rising order, one after
    /// the other. The same records give the same one, in whatever order they are given here.
    package static func digest(of hashes: [GroupRecordHash]) -> GroupRecordHash {
        let sorted = hashes.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
        return GroupRecord.hash(of: sorted.flatMap(\.bytes))
    }
}

/// One of the signed records that a group is made of (the DocC article "Groups"). They merge in any order, over any path: who is a member
/// follows from the set of them alone.
package enum GroupRecord: Sendable, Hashable {
    case charter(GroupCharter)
    case terms(GroupTerms)
    case seat(GroupSeat)
    case leave(GroupLeave)
    case removal(GroupRemoval)

    /// The numbers of the kinds on the wire, and in what is signed.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case charter = 1
        case terms = 2
        case seat = 3
        case leave = 4
        case removal = 5
    }

    /// In which role a key signs.
    package enum Role: UInt8, Sendable, Hashable, CaseIterable {
        /// Of the peer that the record is about.
        case peer = 1
        /// Of the member that let it in.
        case voucher = 2
        /// Of the group's creator.
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

    /// What every signature of a group begins with: never the input of a proof.
    package static let label = "earshot/1 group"

    /// The record's hash in a group.
    package func hash(in group: GroupID) -> GroupRecordHash {
        switch self {
        case .charter(let charter): charter.hash
        case .terms(let terms): terms.hash(in: group)
        case .seat(let seat): seat.hash(in: group)
        case .leave(let leave): leave.hash(in: group)
        case .removal(let removal): removal.hash(in: group)
        }
    }

    /// What is signed: the label, the kind, the role, the group's id and the fields as on the wire.
    static func signedBytes(
        _ kind: Kind, _ role: Role, in group: GroupID, _ fields: (inout PayloadWriter) throws(WireError) -> Void
    ) throws(WireError) -> [UInt8] {
        var writer = PayloadWriter(.groupRecord)
        try fields(&writer)
        return Array(Self.label.utf8) + [kind.rawValue, role.rawValue] + group.bytes + Array(writer.buffer.readableBytesView)
    }

    /// The hash of what is signed, or of something else that tells a record.
    static func hash(of bytes: [UInt8]) -> GroupRecordHash { GroupRecordHash(startOf: SHA256.hash(data: bytes)) }
}

/// What a group is from its beginning on: its id is a digest of this.
package struct GroupCharter: Sendable, Hashable {
    /// `WireLimits.groupNonce` random bytes: the same peer makes as many groups as it likes.
    package let nonce: [UInt8]
    /// The creator's SubjectPublicKeyInfo, DER.
    package let creatorKey: [UInt8]
    package let creatorScheme: SignatureScheme
    /// Only the creator lets others in.
    package let isClosed: Bool
    /// Members may talk without TLS, where their preferences are so.
    package let isUnprotected: Bool
    /// Milliseconds since 1970 by the creator's clock.
    package let createdAtMilliseconds: Int64
    /// The group's id: the first 16 bytes of the SHA-256 of the label `earshot/1 group id` and of the charter, each after its length.
    package let id: GroupID
    /// The creator's id.
    package let creator: PeerID
    package let hash: GroupRecordHash

    /// What the digest that becomes the id begins with.
    package static let label = "earshot/1 group id"

    /// A charter from its fields; throws `malformed` where one is beyond its limits.
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
