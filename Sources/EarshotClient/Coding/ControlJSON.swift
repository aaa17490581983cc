package import EarshotCoding
import FoundationEssentials

/// The one configuration of JSON, for both ends of the socket.
package enum ControlJSON {
    /// Encodes a value: sorted keys, so that equal values are equal text; no line break, so that it fits one line of a stream.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(DateText.string(from: date))
        }
        return Array(try encoder.encode(value))
    }

    /// Decodes a value of the type, or says which field is wrong.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(JSONProblem) -> Value {
        try self.decode(type, from: bytes, noting: nil)
    }

    /// Decodes an answer as a client does that goes on with what it can read: elements of lists and optional parts that it cannot are left
    /// out, and told in words; times that it cannot are unknown.
    package static func read<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(JSONProblem) -> (value: Value, unreadable: [String]) {
        let parts = UnreadableParts()
        return (try self.decode(type, from: bytes, noting: parts), parts.words)
    }

    private static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>, noting parts: UnreadableParts?
    ) throws(JSONProblem) -> Value {
        let data = Data(bytes)
        try JSONText.check(data)
        let decoder = JSONDecoder()
        if let parts, let key = CodingUserInfoKey(rawValue: UnreadableParts.name) { decoder.userInfo[key] = parts }
        decoder.dateDecodingStrategy = .custom(DateText.decode)
        do {
            return try decoder.decode(type, from: data)
        } catch let error as DecodingError {
            throw JSONProblem(error)
        } catch {
            throw JSONProblem(description: "not a JSON document of the expected form")
        }
    }
}
