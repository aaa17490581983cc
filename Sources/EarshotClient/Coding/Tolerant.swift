/// A value of a string enum of which other versions may have more cases. An unknown value is kept as it was received.
public enum Tolerant<Known: RawRepresentable & Hashable & Sendable>: Hashable, Sendable where Known.RawValue == String {
    /// A value that this version knows.
    case known(Known)
    /// A value that this version does not know, as it was received; untrusted text.
    case unknown(String)

    /// Creates the value of the text; never fails.
    public init(rawValue: String) {
        self = Known(rawValue: rawValue).map(Self.known) ?? .unknown(rawValue)
    }

    /// The text of the value.
    public var rawValue: String {
        switch self {
        case .known(let value): value.rawValue
        case .unknown(let text): text
        }
    }

    /// The value, if this version knows it.
    public var known: Known? {
        switch self {
        case .known(let value): value
        case .unknown: nil
        }
    }

    /// Whether the value is this known value.
    public static func == (lhs: Self, rhs: Known) -> Bool { lhs.known == rhs }

    /// Whether the value is anything but this known value.
    public static func != (lhs: Self, rhs: Known) -> Bool { lhs.known != rhs }
}

extension Tolerant: ExpressibleByStringLiteral {
    /// Creates the value of a literal, which may belong to a newer version.
    public init(stringLiteral value: String) { self.init(rawValue: value) }
}

extension Tolerant: Codable {
    /// Decodes any string.
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.rawValue)
    }
}
