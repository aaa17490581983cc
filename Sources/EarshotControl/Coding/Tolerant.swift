/// A value of a string enum that other versions may have more cases of: what is not known is kept as it came.
package enum Tolerant<Known: RawRepresentable & Hashable & Sendable>: Hashable, Sendable where Known.RawValue == String {
    /// One of the values of this version.
    case known(Known)
    /// A value of another version, as it came: untrusted text.
    case unknown(String)

    /// The value that this text stands for; never fails.
    package init(rawValue: String) {
        self = Known(rawValue: rawValue).map(Self.known) ?? .unknown(rawValue)
    }

    /// The text of the value.
    package var rawValue: String {
        switch self {
        case .known(let value): value.rawValue
        case .unknown(let text): text
        }
    }

    /// The value, where this version knows it.
    package var known: Known? {
        switch self {
        case .known(let value): value
        case .unknown: nil
        }
    }

    /// Whether it is this known value.
    package static func == (lhs: Self, rhs: Known) -> Bool { lhs.known == rhs }

    /// Whether it is another value than this known one.
    package static func != (lhs: Self, rhs: Known) -> Bool { lhs.known != rhs }
}

extension Tolerant: Codable {
    /// Decodes any string.
    package init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the string.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.rawValue)
    }
}
