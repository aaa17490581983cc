import FoundationEssentials

/// A JSON document that is not what was expected, in words for a person.
package struct ControlJSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One lower-case sentence: which field, and what is wrong with it.
    package let description: String
}

/// The one configuration of JSON, for both ends of the socket.
package enum ControlJSON {
    /// Encodes a value: sorted keys, so that equal values are equal text; no line break, so that it fits one line of a stream.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(ControlDate.string(from: date))
        }
        return Array(try encoder.encode(value))
    }

    /// Decodes a value of the type, or says which field is wrong.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(ControlJSONError) -> Value {
        try self.decode(type, from: bytes, noting: nil)
    }

    /// Decodes an answer as a client does that goes on with what it can read: elements of lists and optional parts that it cannot are left
    /// out, and told in words; times that it cannot are unknown.
    package static func read<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(ControlJSONError) -> (value: Value, unreadable: [String]) {
        let parts = UnreadableParts()
        return (try self.decode(type, from: bytes, noting: parts), parts.words)
    }

    private static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>, noting parts: UnreadableParts?
    ) throws(ControlJSONError) -> Value {
        let data = Data(bytes)
        // The decoder would guess at other encodings, and read around bytes that are none (RFC 8259 section 8.1).
        guard !data.prefix(4).contains(0), String(validating: data, as: UTF8.self) != nil else {
            throw ControlJSONError(description: "not a JSON document in UTF-8")
        }
        let decoder = JSONDecoder()
        if let parts, let key = CodingUserInfoKey(rawValue: UnreadableParts.name) { decoder.userInfo[key] = parts }
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let date = ControlDate.date(from: try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time such as 2026-11-21T10:00:00Z")
            }
            return date
        }
        do {
            return try decoder.decode(type, from: data)
        } catch let error as DecodingError {
            throw ControlJSONError(description: Self.sentence(for: error))
        } catch {
            throw ControlJSONError(description: "not a JSON document of the expected form")
        }
    }

    static func sentence(for error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            return "`\(Self.path(context.codingPath + [key]))` is missing"
        case .typeMismatch(let type, let context):
            return "`\(Self.path(context.codingPath))` is not \(Self.name(of: type))"
        case .valueNotFound(let type, let context):
            return "`\(Self.path(context.codingPath))` is null and not \(Self.name(of: type))"
        case .dataCorrupted(let context):
            guard !context.codingPath.isEmpty else { return "not a JSON document" }
            return "`\(Self.path(context.codingPath))`: \(context.debugDescription)"
        @unknown default:
            return "not a JSON document of the expected form"
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        let text = keys.map { key in key.intValue.map { "[\($0)]" } ?? key.stringValue }.joined(separator: ".")
        return text.isEmpty ? "the document" : text.replacing(".[", with: "[")
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Double.Type, is Int.Type, is UInt64.Type: "a number"
        case is [String: Any].Type: "an object"
        case is [Any].Type: "a list"
        default: "of the expected form"
        }
    }
}
