internal import Crypto

/// A random 128-bit identifier of one kind of thing; the kinds do not mix.
///
/// The text form is a UUID (RFC 9562 section 4), in lower case. Parsing accepts it with or without hyphens, in either case.
public struct WireID<Kind>: Sendable, Hashable, Codable, LosslessStringConvertible {
    /// The identifier's length in bytes.
    public static var byteCount: Int { 16 }

    /// The upper half, in network order.
    public let high: UInt64
    /// The lower half.
    public let low: UInt64

    /// Creates an identifier from its two halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates an identifier from its 16 bytes in network order; `nil` for any other number of bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        for byte in bytes { halves = (halves.high << 8 | halves.low >> 56, halves.low << 8 | UInt64(byte)) }
        self.init(high: halves.high, low: halves.low)
    }

    /// Creates an identifier from the first 16 bytes of a digest.
    init(startOf digest: SHA256Digest) {
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        for byte in digest.prefix(Self.byteCount) { halves = (halves.high << 8 | halves.low >> 56, halves.low << 8 | UInt64(byte)) }
        self.init(high: halves.high, low: halves.low)
    }

    /// The 16 bytes in network order.
    package var bytes: [UInt8] { withUnsafeBytes(of: (self.high.bigEndian, self.low.bigEndian), Array.init) }

    /// Creates a fresh identifier from the given source of randomness.
    public init(using generator: inout some RandomNumberGenerator) {
        self.init(high: generator.next(), low: generator.next())
    }

    /// Creates a fresh identifier from the system's randomness.
    public static func random() -> Self {
        // Avoids `SystemRandomNumberGenerator`: it has no size, so its `inout` address is whatever was in the register, and the Thread
        // Sanitizer reports that as a variable shared by two threads.
        Self(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }

    /// The number of identifiers of one millisecond that sort by their time.
    package static var ticksPerMillisecond: Int64 { 4096 }

    /// Creates an identifier that sorts by its time, in fractions of a millisecond since 1970 (RFC 9562 section 5.7, version 7, with the
    /// fraction of the millisecond in `rand_a`). An index of many such identifiers grows at its end. 62 bits come from the given
    /// randomness.
    package static func timeOrdered(ticks: Int64, random: UInt64) -> Self {
        let (milliseconds, fraction) = UInt64(max(0, ticks)).quotientAndRemainder(dividingBy: UInt64(Self.ticksPerMillisecond))
        return Self(high: milliseconds << 16 | 0x7000 | fraction, low: 1 << 63 | random >> 2)
    }

    /// Creates an identifier from 32 hexadecimal digits, with or without the hyphens of a UUID.
    public init?(_ description: String) {
        var digits = description
        if digits.utf8.count == 36 {
            let bytes = Array(digits.utf8)
            guard [8, 13, 18, 23].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }) else { return nil }
            digits = String(decoding: bytes.filter { $0 != UInt8(ascii: "-") }, as: UTF8.self)
        }
        guard digits.utf8.count == 32, digits.utf8.allSatisfy(Self.isHexadecimal),
            let high = UInt64(digits.prefix(16), radix: 16), let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    private static func isHexadecimal(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }

    /// The UUID form, in lower case.
    public var description: String {
        String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for index in 0..<32 {
                if [8, 12, 16, 20].contains(index) {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = index < 16 ? self.high : self.low
                let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (index % 16))) & 15
                text[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                place += 1
            }
            return place
        }
    }

    /// Decodes the text form.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let id = Self(text) else {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "an identifier is a UUID"))
        }
        self = id
    }

    /// Encodes the text form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}

/// The tag types of ``WireID``; they have no values.
public enum InvitationKind: Sendable {}
/// See ``InvitationKind``.
public enum SessionKind: Sendable {}
/// See ``InvitationKind``.
public enum MessageKind: Sendable {}
/// See ``InvitationKind``.
public enum ResourceKindTag: Sendable {}
/// See ``InvitationKind``.
public enum ShareKind: Sendable {}
/// See ``InvitationKind``.
public enum StreamKindTag: Sendable {}

/// See ``InvitationKind``.
public enum TransferKindTag: Sendable {}

/// The id of an invitation, made by its inviter.
public typealias InvitationID = WireID<InvitationKind>
/// The id of a session, made by the side that accepts.
public typealias SessionID = WireID<SessionKind>
/// The id of a message, made by its sender and kept by retries.
public typealias MessageID = WireID<MessageKind>
/// The id of a resource, made by its sender.
public typealias ResourceID = WireID<ResourceKindTag>
/// The id that the transfers of one resource to the members of a group share, at their sender. It is not on the wire.
public typealias ShareID = WireID<ShareKind>
/// The id of a stream, made by the side that opens it.
public typealias StreamID = WireID<StreamKindTag>

/// The id of a transfer over a data connection: that of a resource (``ResourceID``), or of a stream.
public typealias TransferID = WireID<TransferKindTag>

extension WireID where Kind == TransferKindTag {
    /// Creates the transfer id with the same 16 bytes as the resource's or stream's id.
    public init(_ id: WireID<some Any>) {
        self.init(high: id.high, low: id.low)
    }
}

extension WireID where Kind == MessageKind {
    /// Returns the id of a program's reply to a message of a peer. It is always the same one for the same message, so that the peer gets one
    /// reply, however often the program replies.
    package static func reply(to message: Self, of sender: PeerID) -> Self {
        Self(startOf: SHA256.ofParts([Array("earshot/1 reply".utf8), sender.bytes, message.bytes]))
    }
}

extension WireID where Kind == ShareKind {
    /// Creates a share's id from one in a user's input, which may name either a share or a single transfer.
    package init(_ id: ResourceID) { self.init(high: id.high, low: id.low) }
}
