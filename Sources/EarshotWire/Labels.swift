/// The reason why a label (a display name, a service type, ...) is not acceptable, as text for a user.
public struct LabelError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One lower-case sentence: what is wrong and what would be valid.
    public let description: String
}

/// A peer's label: 1 to 63 bytes of UTF-8 without control characters (Unicode category Cc). Not unique.
///
/// Format characters (bidirectional, zero-width) are allowed here and escaped wherever a label is shown.
public struct DisplayName: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The longest name, in bytes of UTF-8: one DNS label (RFC 6763 section 4.1.1).
    public static let byteLimit = 63

    /// The name as given.
    public let description: String

    /// Creates a name, checking the limits.
    public init(_ text: String) throws(LabelError) {
        guard (1...Self.byteLimit).contains(text.utf8.count) else {
            throw LabelError(description: "a display name is 1 to \(Self.byteLimit) bytes of UTF-8, not \(text.utf8.count)")
        }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw LabelError(description: "a display name has no control characters")
        }
        self.description = text
    }

    /// Decodes a string, checking the limits.
    public init(from decoder: any Decoder) throws {
        self = try decoder.label { text throws(LabelError) in try Self(text) }
    }

    /// Encodes the string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}

/// The service that connects peers with each other: 1 to 15 of `a-z 0-9 -`, at least one letter, no hyphen at either end or doubled.
///
/// Advertised as `_TYPE._tcp` (RFC 6335 section 5.1, RFC 6763 section 7).
public struct ServiceType: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The longest type, in characters (RFC 6335 section 5.1).
    public static let lengthLimit = 15

    /// The bare type, without underscore or protocol.
    public let description: String

    /// Creates a type, checking the limits.
    public init(_ text: String) throws(LabelError) {
        let bytes = Array(text.utf8)
        let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        let hyphen = UInt8(ascii: "-")
        guard (1...Self.lengthLimit).contains(bytes.count), bytes.allSatisfy({ isLetter($0) || isDigit($0) || $0 == hyphen }),
            bytes.contains(where: isLetter), bytes.first != hyphen, bytes.last != hyphen,
            !zip(bytes, bytes.dropFirst()).contains(where: { $0 == hyphen && $1 == hyphen })
        else {
            throw LabelError(
                description:
                    "a service type is 1 to \(Self.lengthLimit) of a-z, 0-9 and -, with at least one letter and no hyphen at either end or doubled"
            )
        }
        self.description = text
    }

    /// Decodes a string, checking the limits.
    public init(from decoder: any Decoder) throws {
        self = try decoder.label { text throws(LabelError) in try Self(text) }
    }

    /// Encodes the string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}

extension Decoder {
    /// Decodes a string, checking a label's limits.
    func label<Label>(_ read: (String) throws(LabelError) -> Label) throws -> Label {
        let container = try self.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(LabelError) {
            return try read(text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }
}
