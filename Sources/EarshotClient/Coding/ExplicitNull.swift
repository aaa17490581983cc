/// A field that is encoded as `null` if it has no value, instead of being omitted. Decoding accepts both `null` and absence.
@propertyWrapper
public struct ExplicitNull<Value: Codable & Hashable & Sendable>: Hashable, Sendable, Codable {
    /// The value, if any.
    public let wrappedValue: Value?

    /// Wraps an optional value.
    public init(wrappedValue: Value?) {
        self.wrappedValue = wrappedValue
    }

    /// Decodes the value or `null`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self.wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    /// Encodes the value or `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value = self.wrappedValue {
            try container.encode(value)
        } else {
            try container.encodeNil()
        }
    }
}

extension KeyedDecodingContainer {
    /// Decodes an ``ExplicitNull`` field for the synthesised decoding: absence is not an error.
    public func decode<Value>(_ type: ExplicitNull<Value>.Type, forKey key: Key) throws -> ExplicitNull<Value> {
        ExplicitNull(wrappedValue: try self.decodeIfPresent(Value.self, forKey: key))
    }
}
