/// The name of a group, and whether it is dissolved; signed by the creator.
package struct GroupTerms: Sendable, Hashable {
    /// The number of these terms, starting at 1. The highest counts.
    package let number: UInt32
    package let name: DisplayName
    /// Whether the group is dissolved. No later terms undo that.
    package let isDissolved: Bool
    /// The creator's signature.
    package var signature: [UInt8]

    package init(number: UInt32, name: DisplayName, isDissolved: Bool = false, signature: [UInt8] = []) {
        self.number = number
        self.name = name
        self.isDissolved = isDissolved
        self.signature = signature
    }

    /// Returns the bytes that the creator signs.
    package func signedBytes(in group: GroupID) throws(WireError) -> [UInt8] {
        try GroupRecord.signedBytes(.terms, .creator, in: group, self.writeFields)
    }

    package func hash(in group: GroupID) -> GroupRecordHash { GroupRecord.hash(of: (try? self.signedBytes(in: group)) ?? []) }

    func writeFields(into writer: inout PayloadWriter) throws(WireError) {
        try writer.integer("number", self.number, in: 1...UInt32.max)
        try writer.text("name", self.name.description, as: UInt8.self, in: 1...DisplayName.byteLimit)
        writer.integer(self.isDissolved ? UInt8(1) : 0)
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        try self.writeFields(into: &writer)
        try writer.signature("signature", self.signature)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        self.number = try reader.integer("number", in: 1...UInt32.max)
        self.name = try reader.displayName("name")
        self.isDissolved = try reader.integer("dissolved", in: UInt8(0)...1) == 1
        self.signature = try reader.signature("signature")
    }
}

/// A peer's seat in a group: the peer signs it, and a member or the creator vouches for it.
package struct GroupSeat: Sendable, Hashable {
    /// The signature that vouches for the seat, and its role. If two seats have the same peer and number, the seat with the creator's
    /// signature takes precedence over the seat with a member's.
    package struct Warrant: Sendable, Hashable {
        package let role: GroupRecord.Role
        package var signature: [UInt8]

        package init(_ role: GroupRecord.Role, signature: [UInt8] = []) {
            self.role = role
            self.signature = signature
        }
    }

    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    package let scheme: SignatureScheme
    package let name: DisplayName
    /// The number of the seat, starting at 1. It rises each time the peer joins.
    package let number: UInt32
    /// Milliseconds since 1970 by the peer's clock.
    package let joinedAtMilliseconds: Int64
    /// The member that admitted the peer, and the number of that member's own seat.
    package let voucher: PeerID
    package let voucherNumber: UInt32
    /// The peer's own signature.
    package var signature: [UInt8]
    /// The voucher's or the creator's signature.
    package var warrant: Warrant
    /// The peer's id: the digest of its key.
    package let peer: PeerID

    package init(
        publicKey: [UInt8], scheme: SignatureScheme, name: DisplayName, number: UInt32, joinedAtMilliseconds: Int64, voucher: PeerID,
        voucherNumber: UInt32, signature: [UInt8] = [], warrant: Warrant
    ) {
        self.publicKey = publicKey
        self.scheme = scheme
        self.name = name
        self.number = number
        self.joinedAtMilliseconds = joinedAtMilliseconds
        self.voucher = voucher
        self.voucherNumber = voucherNumber
        self.signature = signature
        self.warrant = warrant
        self.peer = PeerID(subjectPublicKeyInfo: publicKey)
    }

    /// Returns the bytes that a key signs in a role: the peer's key in ``GroupRecord/Role/peer``, the voucher's in the warrant's role.
    package func signedBytes(as role: GroupRecord.Role, in group: GroupID) throws(WireError) -> [UInt8] {
        try GroupRecord.signedBytes(.seat, role, in: group, self.writeFields)
    }

    /// Returns the seat's hash. The two kinds of warrant make different records, with different hashes.
    package func hash(in group: GroupID) -> GroupRecordHash {
        GroupRecord.hash(of: (try? self.signedBytes(as: self.warrant.role, in: group)) ?? [])
    }

    func writeFields(into writer: inout PayloadWriter) throws(WireError) {
        try writer.key("key", self.publicKey, self.scheme)
        try writer.text("name", self.name.description, as: UInt8.self, in: 1...DisplayName.byteLimit)
        try writer.integer("number", self.number, in: 1...UInt32.max)
        try writer.integer("joined_at", self.joinedAtMilliseconds, in: WireLimits.sentAtMilliseconds)
        try writer.bytes("voucher", self.voucher.bytes, count: PeerID.byteCount)
        try writer.integer("voucher_number", self.voucherNumber, in: 1...UInt32.max)
    }

    /// Writes the fields and the peer's own signature, as an invitee sends them.
    func writeOwnPart(into writer: inout PayloadWriter) throws(WireError) {
        try self.writeFields(into: &writer)
        try writer.signature("signature", self.signature)
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        try self.writeOwnPart(into: &writer)
        try writer.integer("role", self.warrant.role.rawValue, in: GroupRecord.Role.voucher.rawValue...GroupRecord.Role.creator.rawValue)
        try writer.signature("warrant", self.warrant.signature)
    }

    /// Reads the part that an invitee has signed; the warrant is empty.
    init(ownPartFrom reader: inout PayloadReader) throws(WireError) {
        (self.publicKey, self.scheme) = try reader.key("key")
        self.name = try reader.displayName("name")
        self.number = try reader.integer("number", in: 1...UInt32.max)
        self.joinedAtMilliseconds = try reader.integer("joined_at", in: WireLimits.sentAtMilliseconds)
        self.voucher = try reader.peerID("voucher")
        self.voucherNumber = try reader.integer("voucher_number", in: 1...UInt32.max)
        self.signature = try reader.signature("signature")
        self.warrant = Warrant(.voucher, signature: [])
        self.peer = PeerID(subjectPublicKeyInfo: self.publicKey)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        try self.init(ownPartFrom: &reader)
        let role: GroupRecord.Role = try reader.choice("role")
        guard role != .peer else { throw reader.malformed("role") }
        self.warrant = Warrant(role, signature: try reader.signature("warrant"))
    }
}

/// The departure of a peer: its seats up to a number no longer make it a member.
package struct GroupLeave: Sendable, Hashable {
    /// The peer's key, with which the record can be checked after the seat is discarded.
    package let publicKey: [UInt8]
    package let scheme: SignatureScheme
    package let number: UInt32
    package var signature: [UInt8]
    /// The peer that left.
    package let peer: PeerID

    package init(publicKey: [UInt8], scheme: SignatureScheme, number: UInt32, signature: [UInt8] = []) {
        self.publicKey = publicKey
        self.scheme = scheme
        self.number = number
        self.signature = signature
        self.peer = PeerID(subjectPublicKeyInfo: publicKey)
    }

    /// Returns the bytes that the peer signs.
    package func signedBytes(in group: GroupID) throws(WireError) -> [UInt8] {
        try GroupRecord.signedBytes(.leave, .peer, in: group, self.writeFields)
    }

    package func hash(in group: GroupID) -> GroupRecordHash { GroupRecord.hash(of: (try? self.signedBytes(in: group)) ?? []) }

    func writeFields(into writer: inout PayloadWriter) throws(WireError) {
        try writer.key("key", self.publicKey, self.scheme)
        try writer.integer("number", self.number, in: 1...UInt32.max)
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        try self.writeFields(into: &writer)
        try writer.signature("signature", self.signature)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        (self.publicKey, self.scheme) = try reader.key("key")
        self.number = try reader.integer("number", in: 1...UInt32.max)
        self.signature = try reader.signature("signature")
        self.peer = PeerID(subjectPublicKeyInfo: self.publicKey)
    }
}

/// The removal of a peer by the creator: the peer's seats up to a number are void, and only the creator can admit it again.
package struct GroupRemoval: Sendable, Hashable {
    package let peer: PeerID
    package let number: UInt32
    /// The creator's signature.
    package var signature: [UInt8]

    package init(peer: PeerID, number: UInt32, signature: [UInt8] = []) {
        self.peer = peer
        self.number = number
        self.signature = signature
    }

    /// Returns the bytes that the creator signs.
    package func signedBytes(in group: GroupID) throws(WireError) -> [UInt8] {
        try GroupRecord.signedBytes(.removal, .creator, in: group, self.writeFields)
    }

    package func hash(in group: GroupID) -> GroupRecordHash { GroupRecord.hash(of: (try? self.signedBytes(in: group)) ?? []) }

    func writeFields(into writer: inout PayloadWriter) throws(WireError) {
        try writer.bytes("peer", self.peer.bytes, count: PeerID.byteCount)
        try writer.integer("number", self.number, in: 1...UInt32.max)
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        try self.writeFields(into: &writer)
        try writer.signature("signature", self.signature)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        self.peer = try reader.peerID("peer")
        self.number = try reader.integer("number", in: 1...UInt32.max)
        self.signature = try reader.signature("signature")
    }
}
