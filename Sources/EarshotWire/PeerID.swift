import Crypto

/// The identity of a peer: the SHA-256 of its public key (SubjectPublicKeyInfo, DER).
///
/// The text form is 52 characters of RFC 4648 base32 without padding. The id is independent of restarts, names and addresses, and peers are
/// compared by it alone.
///
/// A LocalSend device has an id of another ``Kind``: the SHA-256 of its TLS certificate (DER), written as `LS-` and 52 characters. No frame
/// and no handshake of Earshot carries such an id, and it never equals the id of an Earshot peer.
public struct PeerID: Sendable, Hashable, Codable, Comparable, LosslessStringConvertible {
    /// The digest's length in bytes.
    public static let byteCount = 32
    /// The text form's length in characters, without ``deviceMark``.
    public static let textLength = 52
    /// The first characters of a LocalSend device's text form.
    public static let deviceMark = "LS-"
    /// The stand-in for the id of a LocalSend sender that has shown no certificate. Any such sender has it, so it identifies nobody: no
    /// peer is listed under it, and no decision is made about it. Archives and the API have null in its place.
    public static let unprovenDevice = PeerID(first: 0, second: 0, third: 0, fourth: 0, kind: .localsend)
    /// The text form of ``unprovenDevice``.
    private static let unprovenText = "LS-UNPROVEN"

    /// The protocol that a peer speaks.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        /// Earshot's own.
        case earshot
        /// LocalSend's.
        case localsend
    }
    /// The fewest leading characters that identify a peer in a user's input.
    public static let shortestPrefix = 8

    /// The digest in quarters, each in network order. An array would be reference-counted each time an id is passed on, and an id is the
    /// key of most tables.
    private let first: UInt64
    private let second: UInt64
    private let third: UInt64
    private let fourth: UInt64
    /// The protocol of the peer.
    public let kind: Kind

    /// The digest, `byteCount` bytes.
    public var bytes: [UInt8] {
        withUnsafeBytes(of: (self.first.bigEndian, self.second.bigEndian, self.third.bigEndian, self.fourth.bigEndian), Array.init)
    }

    /// Creates the id of the peer whose public key has this SubjectPublicKeyInfo, DER-encoded.
    public init(subjectPublicKeyInfo: some Sequence<UInt8>) {
        self = SHA256.hash(data: Array(subjectPublicKeyInfo)).withUnsafeBytes { Self(digest: $0, .earshot) }
    }

    /// Creates the id of the LocalSend device whose TLS certificate is this one, DER-encoded.
    public init(deviceCertificate: some Sequence<UInt8>) {
        self = SHA256.hash(data: Array(deviceCertificate)).withUnsafeBytes { Self(digest: $0, .localsend) }
    }

    /// Creates the id of an Earshot peer, or of another `kind`, from its digest; `nil` unless it is `byteCount` bytes.
    public init?(bytes: some Sequence<UInt8>, kind: Kind = .earshot) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount else { return nil }
        self = bytes.withUnsafeBytes { Self(digest: $0, kind) }
    }

    private init(first: UInt64, second: UInt64, third: UInt64, fourth: UInt64, kind: Kind) {
        (self.first, self.second, self.third, self.fourth) = (first, second, third, fourth)
        self.kind = kind
    }

    /// Creates an id from `byteCount` bytes.
    private init(digest: UnsafeRawBufferPointer, _ kind: Kind) {
        self.kind = kind
        self.first = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        self.second = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        self.third = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        self.fourth = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
    }

    /// Creates an id from its text form, in either case.
    public init?(_ description: String) {
        guard description != Self.unprovenText else {
            self = .unprovenDevice
            return
        }
        let mark = Self.deviceMark.utf8.count
        let isDevice = description.utf8.count == mark + Self.textLength && description.prefix(mark).uppercased() == Self.deviceMark
        let digest = isDevice ? description.dropFirst(mark) : description[...]
        guard digest.utf8.count == Self.textLength, let bytes = Base32.decode(String(digest)),
            let id = PeerID(bytes: bytes, kind: isDevice ? .localsend : .earshot), id != .unprovenDevice
        else { return nil }
        self = id
    }

    /// Creates the id of an Earshot peer from its text form, in either case; `nil` for that of a device.
    public init?(earshot description: String) {
        guard let id = PeerID(description), id.kind == .earshot else { return nil }
        self = id
    }

    /// 52 characters of upper-case base32, after ``deviceMark`` for a LocalSend device.
    public var description: String {
        guard self != .unprovenDevice else { return Self.unprovenText }
        let digest = Base32.encode(self.bytes)
        return switch self.kind {
        case .earshot: digest
        case .localsend: Self.deviceMark + digest
        }
    }

    /// Hashes half of the digest, which suffices to distinguish the peers in a table. Hashing all of it would dominate the cost of a
    /// lookup.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
        hasher.combine(self.second)
    }

    /// Compares the digests' bytes. The order decides crossing invitations and simultaneous dials. Devices come after Earshot peers.
    public static func < (lhs: PeerID, rhs: PeerID) -> Bool {
        guard lhs.kind == rhs.kind else { return lhs.kind == .earshot }
        return (lhs.first, lhs.second, lhs.third, lhs.fourth) < (rhs.first, rhs.second, rhs.third, rhs.fourth)
    }

    /// The SHA-256 of a LocalSend device's certificate in upper-case hexadecimal digits, as LocalSend shows it; `nil` for other ids.
    public var fingerprint: String? {
        self.kind == .localsend && self != .unprovenDevice ? self.bytes.hexadecimal.uppercased() : nil
    }

    /// Decodes the text form, or null for ``unprovenDevice``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard !container.decodeNil() else {
            self = .unprovenDevice
            return
        }
        let text = try container.decode(String.self)
        guard let id = PeerID(text) else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "a peer id is \(Self.textLength) characters of base32, after \(Self.deviceMark) for a device"))
        }
        self = id
    }

    /// Encodes the text form, or null for ``unprovenDevice``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        guard self != .unprovenDevice else { return try container.encodeNil() }
        try container.encode(self.description)
    }
}
