/// How a message's bytes stand in JSON: text as `body`, anything else as `body_base64`, exactly one of the two. Long text of which most
/// would be escapes, up to six bytes for one, is base64 too: so the longest body fits into a request, and an answer is not many times as
/// long as what it has to say.
package enum BodyCoding {
    /// The content type of a `body` that names none.
    package static let textType = "text/plain; charset=utf-8"
    /// The content type of a `body_base64` that names none.
    package static let binaryType = "application/octet-stream"

    /// The bytes as text, where the content type says text and they are valid UTF-8; `nil` otherwise.
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

    /// Up to so many bytes, text stands as text whatever is in it.
    package static let shortText = 4096

    /// Whether it is long text that would be longer still in JSON, with its escapes, than the same bytes as base64.
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

    /// The bytes, and whether they stood as text.
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
