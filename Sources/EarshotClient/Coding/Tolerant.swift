/// A value of a string enum that other versions may have more cases of: what is not known is kept as it came.
public enum Tolerant<Known: RawRepresentable & Hashable & Sendable>: Hashable, Sendable where Known.RawValue == String {
    /// One of the values of this version.
    case known(Known)
    /// A value of another version, as it came: untrusted text.
    case unknown(String)

    /// The value that this text stands for; never fails.
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

    /// The value, where this version knows it.
    public var known: Known? {
        switch self {
        case .known(let value): value
        case .unknown: nil
        }
    }

    /// Whether it is this known value.
    public static func == (lhs: Self, rhs: Known) -> Bool { lhs.known == rhs }

    /// Whether it is another value than this known one.
    public static func != (lhs: Self, rhs: Known) -> Bool { lhs.known != rhs }
}

extension Tolerant: ExpressibleByStringLiteral {
    /// The value that a literal stands for, such as one of a newer version.
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
