/// A part of an answer that may be absent: one that a client cannot read is absent for it, and noted.
@propertyWrapper
public struct ReadableValue<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The value; `nil` where it is absent, `null`, or cannot be read.
    public let wrappedValue: Value?

    /// Wraps a value or its lack.
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
    /// What the compiler's own decoding calls for a ``ReadableValue`` field: absence is no error.
    public func decode<Value>(_ type: ReadableValue<Value>.Type, forKey key: Key) throws -> ReadableValue<Value> {
        try self.decodeIfPresent(ReadableValue<Value>.self, forKey: key) ?? ReadableValue(nil)
    }
}

extension KeyedEncodingContainer {
    /// What the compiler's own encoding calls for a ``ReadableValue`` field: what is absent stays so.
    public mutating func encode<Value>(_ value: ReadableValue<Value>, forKey key: Key) throws {
        try self.encodeIfPresent(value.wrappedValue, forKey: key)
    }
}
