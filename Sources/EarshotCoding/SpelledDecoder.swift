import FoundationEssentials

/// A value decoded by the spelling of ``KeySpelling``.
///
/// A `JSONDecoder` converts the document's keys before it knows which names a type has, and so cannot find `buildID` by `build_id`. This decoder
/// converts the names that a type asks for instead.
struct Spelled<Value: Decodable>: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
        switch Value.self {
        case is Date.Type, is Data.Type, is URL.Type, is Decimal.Type:
            // The JSON decoder has special forms for these types.
            self.value = try decoder.singleValueContainer().decode(Value.self)
        case let type as any StringKeyed.Type:
            self.value = try Self.cast(type.decode(from: decoder), in: decoder)
        default: self.value = try Value(from: SpelledDecoder(base: decoder))
        }
    }

    private static func cast(_ value: Any, in decoder: any Decoder) throws -> Value {
        guard let value = value as? Value else {
            throw DecodingError.typeMismatch(
                Value.self, DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "not the dictionary asked for"))
        }
        return value
    }
}

/// A dictionary whose keys the JSON coders leave unchanged.
private protocol StringKeyed { static func decode(from decoder: any Decoder) throws -> Self }

extension Dictionary: StringKeyed where Key == String, Value: Decodable {
    fileprivate static func decode(from decoder: any Decoder) throws -> Self {
        try decoder.singleValueContainer().decode([String: Spelled<Value>].self).mapValues(\.value)
    }
}

/// A key as spelled in the document.
struct DocumentKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

private struct SpelledDecoder: Decoder {
    let base: any Decoder

    var codingPath: [any CodingKey] { self.base.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { self.base.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(SpelledFields(base: try self.base.container(keyedBy: DocumentKey.self)))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { SpelledElements(base: try self.base.unkeyedContainer()) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { SpelledValue(base: try self.base.singleValueContainer()) }
}

private struct SpelledFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let base: KeyedDecodingContainer<DocumentKey>

    var codingPath: [any CodingKey] { self.base.codingPath }
    var allKeys: [Key] { self.base.allKeys.compactMap { KeySpelling.key(spelled: $0.stringValue, as: Key.self) } }

    private func found(_ key: Key) -> DocumentKey {
        let own = DocumentKey(stringValue: KeySpelling.spelling(of: key))
        guard !self.base.contains(own), let earlier = KeySpelling.earlierSpelling(of: key).map(DocumentKey.init(stringValue:)),
            self.base.contains(earlier)
        else { return own }
        return earlier
    }

    func contains(_ key: Key) -> Bool { self.base.contains(self.found(key)) }
    func decodeNil(forKey key: Key) throws -> Bool { try self.base.decodeNil(forKey: self.found(key)) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try self.base.decode(Spelled<T>.self, forKey: self.found(key)).value
    }

    func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type, forKey key: Key) throws -> KeyedDecodingContainer<NestedKey> {
        KeyedDecodingContainer(
            SpelledFields<NestedKey>(base: try self.base.nestedContainer(keyedBy: DocumentKey.self, forKey: self.found(key))))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        SpelledElements(base: try self.base.nestedUnkeyedContainer(forKey: self.found(key)))
    }

    func superDecoder() throws -> any Decoder { SpelledDecoder(base: try self.base.superDecoder()) }
    func superDecoder(forKey key: Key) throws -> any Decoder { SpelledDecoder(base: try self.base.superDecoder(forKey: self.found(key))) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try self.base.decode(type, forKey: self.found(key)) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try self.base.decode(type, forKey: self.found(key)) }
}

private struct SpelledElements: UnkeyedDecodingContainer {
    var base: any UnkeyedDecodingContainer

    var codingPath: [any CodingKey] { self.base.codingPath }
    var count: Int? { self.base.count }
    var isAtEnd: Bool { self.base.isAtEnd }
    var currentIndex: Int { self.base.currentIndex }

    mutating func decodeNil() throws -> Bool { try self.base.decodeNil() }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try self.base.decode(Spelled<T>.self).value }

    mutating func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) throws -> KeyedDecodingContainer<NestedKey> {
        KeyedDecodingContainer(SpelledFields<NestedKey>(base: try self.base.nestedContainer(keyedBy: DocumentKey.self)))
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        SpelledElements(base: try self.base.nestedUnkeyedContainer())
    }

    mutating func superDecoder() throws -> any Decoder { SpelledDecoder(base: try self.base.superDecoder()) }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try self.base.decode(type) }
    mutating func decode(_ type: String.Type) throws -> String { try self.base.decode(type) }
    mutating func decode(_ type: Double.Type) throws -> Double { try self.base.decode(type) }
    mutating func decode(_ type: Float.Type) throws -> Float { try self.base.decode(type) }
    mutating func decode(_ type: Int.Type) throws -> Int { try self.base.decode(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try self.base.decode(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try self.base.decode(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try self.base.decode(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try self.base.decode(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try self.base.decode(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try self.base.decode(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try self.base.decode(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try self.base.decode(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try self.base.decode(type) }
}

private struct SpelledValue: SingleValueDecodingContainer {
    let base: any SingleValueDecodingContainer

    var codingPath: [any CodingKey] { self.base.codingPath }

    func decodeNil() -> Bool { self.base.decodeNil() }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try self.base.decode(Spelled<T>.self).value }

    func decode(_ type: Bool.Type) throws -> Bool { try self.base.decode(type) }
    func decode(_ type: String.Type) throws -> String { try self.base.decode(type) }
    func decode(_ type: Double.Type) throws -> Double { try self.base.decode(type) }
    func decode(_ type: Float.Type) throws -> Float { try self.base.decode(type) }
    func decode(_ type: Int.Type) throws -> Int { try self.base.decode(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try self.base.decode(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try self.base.decode(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try self.base.decode(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try self.base.decode(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try self.base.decode(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try self.base.decode(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try self.base.decode(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try self.base.decode(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try self.base.decode(type) }
}
