package import NIOCore

extension GroupRecord {
    /// Appends the record's encoding: the kind (u8), its fields, its signatures.
    /// - Throws: `malformed` for a field beyond its limits.
    package func encode(into buffer: inout ByteBuffer) throws(WireError) {
        var writer = PayloadWriter(.groupRecord)
        try self.write(into: &writer)
        buffer.writeImmutableBuffer(writer.buffer)
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        writer.integer(self.kind.rawValue)
        switch self {
        case .charter(let charter): try charter.write(into: &writer)
        case .terms(let terms): try terms.write(into: &writer)
        case .seat(let seat): try seat.write(into: &writer)
        case .leave(let leave): try leave.write(into: &writer)
        case .removal(let removal): try removal.write(into: &writer)
        }
    }

    /// Decodes a record; the encoding is canonical.
    package init(decoding bytes: ByteBuffer) throws(WireError) {
        var reader = PayloadReader(bytes, of: .groupRecord)
        self = try Self.read(from: &reader)
        try reader.finish()
    }

    static func read(from reader: inout PayloadReader) throws(WireError) -> GroupRecord {
        let kind: Kind = try reader.choice("kind")
        return switch kind {
        case .charter: .charter(try GroupCharter(from: &reader))
        case .terms: .terms(try GroupTerms(from: &reader))
        case .seat: .seat(try GroupSeat(from: &reader))
        case .leave: .leave(try GroupLeave(from: &reader))
        case .removal: .removal(try GroupRemoval(from: &reader))
        }
    }
}

// MARK: The longest encodings, in bytes

extension WireLimits {
    private static let groupKey = 2 + 2 + publicKey
    private static let groupName = 1 + DisplayName.byteLimit
    private static let groupSignature = 2 + signature

    /// A charter, without the kind.
    static let groupCharter = groupNonce + groupKey + 1 + 8
    /// Terms with their signature, without the kind.
    static let groupTerms = 4 + groupName + 1 + groupSignature
    /// A seat with only its peer's signature, without the kind.
    static let groupSeat = groupKey + groupName + 4 + 8 + PeerID.byteCount + 4 + groupSignature
    /// A record: the longest is a seat with both signatures.
    package static let groupRecord = 1 + groupSeat + 1 + groupSignature
}

// MARK: Fields that several records share

extension PayloadReader {
    mutating func key(_ field: String) throws(WireError) -> (key: [UInt8], scheme: SignatureScheme) {
        let scheme = SignatureScheme(rawValue: try self.integer(field))
        return (try self.bytes(field, in: 1...WireLimits.publicKey), scheme)
    }

    mutating func signature(_ field: String) throws(WireError) -> [UInt8] { try self.bytes(field, in: 1...WireLimits.signature) }

    mutating func peerID(_ field: String) throws(WireError) -> PeerID {
        guard let id = PeerID(bytes: try self.bytes(field, count: PeerID.byteCount)) else { throw self.malformed(field) }
        return id
    }

    mutating func displayName(_ field: String) throws(WireError) -> DisplayName {
        let count = try self.length(field, as: UInt8.self, in: 1...DisplayName.byteLimit)
        let text = try self.text(field, count: count)
        guard let name = try? DisplayName(text) else { throw self.malformed(field) }
        return name
    }
}

extension PayloadWriter {
    mutating func key(_ field: String, _ key: [UInt8], _ scheme: SignatureScheme) throws(WireError) {
        self.integer(scheme.rawValue)
        try self.bytes(field, key, in: 1...WireLimits.publicKey)
    }

    mutating func signature(_ field: String, _ signature: [UInt8]) throws(WireError) {
        try self.bytes(field, signature, in: 1...WireLimits.signature)
    }
}
