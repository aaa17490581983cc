/// The name that the opening side gives a stream: 1 to 255 bytes of UTF-8 without control characters (Unicode category Cc). Not unique.
///
/// Format characters (bidirectional, zero-width) are allowed here and escaped wherever a label is shown.
public struct StreamName: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The longest name, in bytes of UTF-8.
    public static let byteLimit = 255

    /// The name as given.
    public let description: String

    /// Creates a name, checking the limits.
    public init(_ text: String) throws(LabelError) {
        guard (1...Self.byteLimit).contains(text.utf8.count) else {
            throw LabelError(description: "a stream's name is 1 to \(Self.byteLimit) bytes of UTF-8, not \(text.utf8.count)")
        }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw LabelError(description: "a stream's name has no control characters")
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
