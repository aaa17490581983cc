/// A value that is sent as a message with its own content type.
///
/// ```swift
/// struct Reading: TypedMessage {
///     static let contentType = "application/vnd.example.reading+json"
///     var sensor: String
///     var celsius: Double
/// }
/// ```
public protocol TypedMessage: Codable, Sendable {
    /// The content type of its messages: a media type (RFC 6838) of 1 to 255 bytes. Messages of the type are recognized by it alone.
    static var contentType: String { get }

    /// The coding of the value; ``MessageCoding/standard`` by default.
    static var coding: MessageCoding { get }
}

extension TypedMessage {
    /// The standard coding: keys as declared, dates as text, sorted keys.
    public static var coding: MessageCoding { .standard }

    /// Returns the message's body.
    /// - Throws: `JSONProblem` if the value cannot be JSON, such as a number that is not finite.
    public func encoded() throws(JSONProblem) -> [UInt8] { try Self.coding.encode(self) }

    /// Decodes a message's body; its content type is not checked.
    /// - Throws: `JSONProblem` if the body is not a value of this type.
    public init(encoded body: some Sequence<UInt8>) throws(JSONProblem) { self = try Self.coding.decode(Self.self, from: body) }
}

/// The body of a received message, decoded as one of its reader's types.
public enum TypedContent: Sendable {
    /// A value of the type that has the message's content type.
    case value(any TypedMessage)
    /// The body of a message that could not be decoded, as received: untrusted.
    case bytes([UInt8], NoValue)

    /// The reason why there is no value.
    public enum NoValue: Hashable, Sendable {
        /// None of the named types has the message's content type.
        case otherType
        /// The type with this content type cannot decode the body.
        case undecodable(JSONProblem)
    }

    /// Returns the value, if it is of that type.
    public func value<Value: TypedMessage>(as type: Value.Type) -> Value? {
        if case .value(let value) = self { value as? Value } else { nil }
    }
}

/// The message types of a reader. The content type alone selects among them.
public struct MessageTypes: Sendable {
    private let types: [String: any TypedMessage.Type]

    /// Creates a set of types. Two types with one content type are a programming error, which ends the program.
    public init<each Value: TypedMessage>(_ types: repeat (each Value).Type) {
        var known: [String: any TypedMessage.Type] = [:]
        for type in repeat each types {
            let name = Self.essence(of: type.contentType)
            precondition(known.updateValue(type, forKey: name) == nil, "two types of messages have the content type \(name)")
        }
        self.types = known
    }

    /// Decodes a message with that content type and body.
    public func content(_ contentType: String, _ body: [UInt8]) -> TypedContent {
        guard let type = self.types[Self.essence(of: contentType)] else { return .bytes(body, .otherType) }
        do throws(JSONProblem) {
            return .value(try type.init(encoded: body))
        } catch {
            return .bytes(body, .undecodable(error))
        }
    }

    /// Returns the type and subtype in lower case, without parameters such as `charset=utf-8` (RFC 2045 section 5.1).
    private static func essence(of contentType: String) -> String {
        let name = contentType.prefix { $0 != ";" }
        let trimmed = name.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed()
        return String(trimmed).lowercased()
    }
}
