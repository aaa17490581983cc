package import EarshotCoding

/// The one configuration of JSON, for both ends of the socket.
package enum ControlJSON {
    /// Sorted keys, so that equal values are equal text; no line break, so that it fits one line of a stream.
    private static let coding = MessageCoding.standard

    /// Encodes a value.
    package static func encode(_ value: some Encodable) throws(JSONProblem) -> [UInt8] { try self.coding.encode(value) }

    /// Decodes a value of the type, or says which field is wrong.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(JSONProblem) -> Value {
        try self.coding.decode(type, from: bytes)
    }

    /// Decodes an answer as a client does that goes on with what it can read: elements of lists and optional parts that it cannot are left
    /// out, and told in words; times that it cannot are unknown.
    package static func read<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(JSONProblem) -> (value: Value, unreadable: [String]) {
        let parts = UnreadableParts()
        let userInfo = CodingUserInfoKey(rawValue: UnreadableParts.name).map { [$0: parts] } ?? [:]
        return (try self.coding.decode(type, from: bytes, userInfo: userInfo), parts.words)
    }
}
