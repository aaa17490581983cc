import Crypto

/// Who a peer is: the SHA-256 of its public key (SubjectPublicKeyInfo, DER).
///
/// Written as 52 characters of RFC 4648 base32 without padding. It is stable across restarts, names and addresses,
/// and is the only thing by which peers are compared.
public struct PeerID: Sendable, Hashable, Codable, Comparable, LosslessStringConvertible {
    /// The digest's length in bytes.
    public static let byteCount = 32
    /// The written form's length in characters.
    public static let textLength = 52
    /// The fewest leading characters by which a person may name a peer.
    public static let shortestPrefix = 8

    /// The digest in quarters, each in network order. An array would be counted each time that an id is handed on, and an id is the key of
    /// most tables.
    private let first: UInt64
    private let second: UInt64
    private let third: UInt64
    private let fourth: UInt64

    /// The digest, `byteCount` bytes.
    public var bytes: [UInt8] {
        withUnsafeBytes(of: (self.first.bigEndian, self.second.bigEndian, self.third.bigEndian, self.fourth.bigEndian), Array.init)
    }

    /// The id of the peer whose public key has this SubjectPublicKeyInfo, DER-encoded.
    public init(subjectPublicKeyInfo: some Sequence<UInt8>) {
        self = SHA256.hash(data: Array(subjectPublicKeyInfo)).withUnsafeBytes(Self.init(digest:))
    }

    /// An id from its digest; `nil` unless it is `byteCount` bytes.
    public init?(bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount else { return nil }
        self = bytes.withUnsafeBytes(Self.init(digest:))
    }

    /// From `byteCount` bytes.
    private init(digest: UnsafeRawBufferPointer) {
        self.first = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        self.second = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        self.third = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        self.fourth = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
    }

    /// An id from its written form, in either case.
    public init?(_ description: String) {
        guard description.utf8.count == Self.textLength, let bytes = Base32.decode(description) else { return nil }
        self.init(bytes: bytes)
    }

    /// 52 characters of upper-case base32.
    public var description: String { Base32.encode(self.bytes) }

    /// Half of the digest tells as many peers apart as a table can hold; all of it would be most of the cost of a look-up.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
        hasher.combine(self.second)
    }

    /// Order of the digests' bytes: what decides crossing invitations and simultaneous dials.
    public static func < (lhs: PeerID, rhs: PeerID) -> Bool {
        (lhs.first, lhs.second, lhs.third, lhs.fourth) < (rhs.first, rhs.second, rhs.third, rhs.fourth)
    }

    /// Decodes the written form.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let id = PeerID(text) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a peer id is \(Self.textLength) characters of base32"))
        }
        self = id
    }

    /// Encodes the written form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}
