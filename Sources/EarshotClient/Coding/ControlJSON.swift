package import EarshotCoding

/// The JSON configuration that client and daemon share.
package enum ControlJSON {
    /// Uses sorted keys, so that equal values have equal text, and no line breaks, so that a value fits on one line of a stream.
    private static let coding = MessageCoding.standard

    /// Encodes a value.
    package static func encode(_ value: some Encodable) throws(JSONProblem) -> [UInt8] { try self.coding.encode(value) }

    /// Decodes a value of the type; the error names the wrong field.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(JSONProblem) -> Value {
        try self.coding.decode(type, from: bytes)
    }

    /// Decodes an answer for a client that skips unreadable parts: unreadable list elements and optional parts are left out and reported as
    /// text; unreadable times are unknown.
    package static func read<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(JSONProblem) -> (value: Value, unreadable: [String]) {
        let parts = UnreadableParts()
        let userInfo = CodingUserInfoKey(rawValue: UnreadableParts.name).map { [$0: parts] } ?? [:]
        return (try self.coding.decode(type, from: bytes, userInfo: userInfo), parts.words)
    }
}
