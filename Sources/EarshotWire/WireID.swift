internal import Crypto

/// A random 128-bit identifier of one kind of thing; the kinds do not mix.
///
/// Written as a UUID is (RFC 9562 section 4), in lower case; read with or without hyphens, in either case.
public struct WireID<Kind>: Sendable, Hashable, Codable, LosslessStringConvertible {
    /// The identifier's length in bytes.
    public static var byteCount: Int { 16 }

    /// The upper half, in network order.
    public let high: UInt64
    /// The lower half.
    public let low: UInt64

    /// An identifier from its two halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An identifier from its 16 bytes in network order; `nil` where they are more or fewer.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        for byte in bytes { halves = (halves.high << 8 | halves.low >> 56, halves.low << 8 | UInt64(byte)) }
        self.init(high: halves.high, low: halves.low)
    }

    /// The first 16 bytes of a digest.
    init(startOf digest: SHA256Digest) {
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        for byte in digest.prefix(Self.byteCount) { halves = (halves.high << 8 | halves.low >> 56, halves.low << 8 | UInt64(byte)) }
        self.init(high: halves.high, low: halves.low)
    }

    /// The 16 bytes in network order.
    package var bytes: [UInt8] { withUnsafeBytes(of: (self.high.bigEndian, self.low.bigEndian), Array.init) }

    /// A fresh identifier from the given source of randomness.
    public init(using generator: inout some RandomNumberGenerator) {
        self.init(high: generator.next(), low: generator.next())
    }

    /// A fresh identifier from the system's randomness.
    public static func random() -> Self {
        // Not by way of a generator: that one has no size, so that its `inout` address is whatever was in the register, which the Thread
        // Sanitizer takes for a variable that two threads change.
        Self(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }

    /// How many identifiers of one millisecond sort by their time.
    package static var ticksPerMillisecond: Int64 { 4096 }

    /// An identifier that sorts by its time, in parts of a millisecond since 1970 (RFC 9562 section 5.7, version 7, with the fraction of the
    /// millisecond in `rand_a`): an index of many of them grows at its end. 62 bits are the randomness that is handed in.
    package static func timeOrdered(ticks: Int64, random: UInt64) -> Self {
        let (milliseconds, fraction) = UInt64(max(0, ticks)).quotientAndRemainder(dividingBy: UInt64(Self.ticksPerMillisecond))
        return Self(high: milliseconds << 16 | 0x7000 | fraction, low: 1 << 63 | random >> 2)
    }

    /// An identifier from 32 hexadecimal digits, with or without the hyphens of a UUID.
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

    /// Decodes the written form.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let id = Self(text) else {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "an identifier is a UUID"))
        }
        self = id
    }

    /// Encodes the written form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}

/// The kinds of ``WireID``; they have no values.
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

/// Names one invitation, made by its inviter.
public typealias InvitationID = WireID<InvitationKind>
/// Names one session, made by the side that accepts.
public typealias SessionID = WireID<SessionKind>
/// Names one message of its sender, for retries.
public typealias MessageID = WireID<MessageKind>
/// Names one resource, made by its sender.
public typealias ResourceID = WireID<ResourceKindTag>
/// Names what the transfers of one thing to the members of a group have in common, at their sender; it is not on the wire.
public typealias ShareID = WireID<ShareKind>
/// Names one stream, made by the side that opens it.
public typealias StreamID = WireID<StreamKindTag>

/// Names whatever moves over a data connection: a resource, by its ``ResourceID``, or a stream.
public typealias TransferID = WireID<TransferKindTag>

extension WireID where Kind == TransferKindTag {
    /// The same 16 bytes as the name of what moves.
    public init(_ id: WireID<some Any>) {
        self.init(high: id.high, low: id.low)
    }
}

extension WireID where Kind == ShareKind {
    /// A share by the name that a person gives, who does not tell one from the transfers of it.
    package init(_ id: ResourceID) { self.init(high: id.high, low: id.low) }
}
