/// An optional part of an answer. If a client cannot read the part, it is absent and recorded.
@propertyWrapper
public struct ReadableValue<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The value; `nil` if it is absent, `null`, or unreadable.
    public let wrappedValue: Value?

    /// Wraps an optional value.
    public init(_ value: Value?) { self.wrappedValue = value }

    /// Decodes the value or `null`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        do {
            self.wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
        } catch {
            guard let notes = decoder.userInfo.unreadable else { throw error }
            notes.add(error)
            self.wrappedValue = nil
        }
    }

    /// Encodes the value or `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.wrappedValue)
    }
}

extension KeyedDecodingContainer {
    /// Decodes a ``ReadableValue`` field for the synthesised decoding: absence is not an error.
    public func decode<Value>(_ type: ReadableValue<Value>.Type, forKey key: Key) throws -> ReadableValue<Value> {
        try self.decodeIfPresent(ReadableValue<Value>.self, forKey: key) ?? ReadableValue(nil)
    }
}

extension KeyedEncodingContainer {
    /// Encodes a ``ReadableValue`` field for the synthesised encoding: an absent value is omitted.
    public mutating func encode<Value>(_ value: ReadableValue<Value>, forKey key: Key) throws {
        try self.encodeIfPresent(value.wrappedValue, forKey: key)
    }
}
