/// A value that travels as a message of a content type of its own.
///
/// ```swift
/// struct Reading: TypedMessage {
///     static let contentType = "application/vnd.example.reading+json"
///     var sensor: String
///     var celsius: Double
/// }
/// ```
public protocol TypedMessage: Codable, Sendable {
    /// What its messages are called: a media type (RFC 6838) of 1 to 255 bytes. Only by it are they told from others.
    static var contentType: String { get }

    /// How it stands in JSON; ``MessageCoding/standard`` where a type says nothing.
    static var coding: MessageCoding { get }
}

extension TypedMessage {
    /// Keys as they are declared, dates as text, sorted.
    public static var coding: MessageCoding { .standard }

    /// The message's body.
    /// - Throws: where the value cannot be JSON, such as a number that is not finite.
    public func encoded() throws(JSONProblem) -> [UInt8] { try Self.coding.encode(self) }

    /// The value of a message's body; its content type is not looked at.
    /// - Throws: where the body is not a value of this type.
    public init(encoded body: some Sequence<UInt8>) throws(JSONProblem) { self = try Self.coding.decode(Self.self, from: body) }
}

/// The body of a received message, as one of the types that its reader has named.
public enum TypedContent: Sendable {
    /// A value of the type that has the message's content type.
    case value(any TypedMessage)
    /// What is none, as it came: untrusted.
    case bytes([UInt8], NoValue)

    /// Why there is no value.
    public enum NoValue: Hashable, Sendable {
        /// None of the named types has the message's content type.
        case otherType
        /// The type that has it does not take the body.
        case undecodable(JSONProblem)
    }

    /// The value, where it is of that type.
    public func value<Value: TypedMessage>(as type: Value.Type) -> Value? {
        if case .value(let value) = self { value as? Value } else { nil }
    }
}

/// The types that a reader takes messages of. The content type picks among them, and nothing else does.
public struct MessageTypes: Sendable {
    private let types: [String: any TypedMessage.Type]

    /// These types. Two with one content type are an error in the program, and end it.
    public init<each Value: TypedMessage>(_ types: repeat (each Value).Type) {
        var known: [String: any TypedMessage.Type] = [:]
        for type in repeat each types {
            let name = Self.essence(of: type.contentType)
            precondition(known.updateValue(type, forKey: name) == nil, "two types of messages have the content type \(name)")
        }
        self.types = known
    }

    /// What a message with that content type and body is.
    public func content(_ contentType: String, _ body: [UInt8]) -> TypedContent {
        guard let type = self.types[Self.essence(of: contentType)] else { return .bytes(body, .otherType) }
        do throws(JSONProblem) {
            return .value(try type.init(encoded: body))
        } catch {
            return .bytes(body, .undecodable(error))
        }
    }

    /// Type and subtype, which are written in any case, without parameters such as `charset=utf-8` (RFC 2045 section 5.1).
    private static func essence(of contentType: String) -> String {
        let name = contentType.prefix { $0 != ";" }
        let trimmed = name.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed()
        return String(trimmed).lowercased()
    }
}
