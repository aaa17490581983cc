/// The form of a message's body in JSON: text as `body`, anything else as `body_base64`, and exactly one of the two. Long text that
/// consists mostly of escapes, each up to six bytes, is also encoded as base64. So the longest body fits into a request, and an answer is
/// not many times as long as its content.
package enum BodyCoding {
    /// The content type of a `body` without a content type.
    package static let textType = "text/plain; charset=utf-8"
    /// The content type of a `body_base64` without a content type.
    package static let binaryType = "application/octet-stream"

    /// The bytes as text, if the content type is text and the bytes are valid UTF-8; otherwise `nil`.
    package static func text(_ bytes: [UInt8], contentType: String) -> String? {
        guard contentType.lowercased().hasPrefix("text/") else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    static func encode<Key: CodingKey>(
        _ bytes: [UInt8], contentType: String, text: Key, base64: Key, in container: inout KeyedEncodingContainer<Key>
    ) throws {
        if !Self.isShorterAsBase64(bytes), let string = Self.text(bytes, contentType: contentType) {
            try container.encode(string, forKey: text)
        } else {
            try container.encode(Base64Bytes(bytes), forKey: base64)
        }
    }

    /// The most bytes of text that is encoded as text whatever it contains.
    package static let shortText = 4096

    /// Whether long text would be longer in JSON, with its escapes, than as base64.
    static func isShorterAsBase64(_ bytes: [UInt8]) -> Bool {
        guard bytes.count > Self.shortText else { return false }
        let escapes = bytes.reduce(0) { sum, byte in
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\""), UInt8(ascii: "\\"): sum + 1
            case 0..<0x20: sum + 5
            default: sum
            }
        }
        return escapes > bytes.count / 3
    }

    /// The bytes, and whether they were encoded as text.
    static func decode<Key: CodingKey>(
        text: Key, base64: Key, in container: KeyedDecodingContainer<Key>
    ) throws -> (bytes: [UInt8], isText: Bool) {
        let string = try container.decodeIfPresent(String.self, forKey: text)
        let encoded = try container.decodeIfPresent(Base64Bytes.self, forKey: base64)
        switch (string, encoded) {
        case (let string?, nil): return (Array(string.utf8), true)
        case (nil, let encoded?): return (encoded.bytes, false)
        case (nil, nil):
            throw DecodingError.keyNotFound(text, .init(codingPath: container.codingPath, debugDescription: "no body"))
        case (_?, _?):
            throw DecodingError.dataCorruptedError(
                forKey: base64, in: container, debugDescription: "given together with `\(text.stringValue)`; give one of them")
        }
    }
}
