/// A field that is written as `null` where it has no value, instead of being left out; read alike from `null` and from absence.
@propertyWrapper
public struct ExplicitNull<Value: Codable & Hashable & Sendable>: Hashable, Sendable, Codable {
    /// The value, where there is one.
    public let wrappedValue: Value?

    /// Wraps a value or its lack.
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
    /// What the compiler's own decoding calls for an ``ExplicitNull`` field: absence is no error.
    public func decode<Value>(_ type: ExplicitNull<Value>.Type, forKey key: Key) throws -> ExplicitNull<Value> {
        ExplicitNull(wrappedValue: try self.decodeIfPresent(Value.self, forKey: key))
    }
}
