import FoundationEssentials

/// Bytes that are a base64 string (RFC 4648 section 4) in JSON.
public struct Base64Bytes: Hashable, Sendable, Codable {
    /// The bytes themselves.
    public let bytes: [UInt8]

    /// Wraps bytes.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Decodes a base64 string.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        // Foundation accepts padding where it is not allowed.
        let content = text.utf8.prefix { $0 != UInt8(ascii: "=") }.count
        guard text.utf8.count.isMultiple(of: 4), text.utf8.count - content <= 2, let data = Data(base64Encoded: text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not base64 (RFC 4648)")
        }
        self.bytes = Array(data)
    }

    /// Encodes a base64 string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(self.bytes).base64EncodedString())
    }
}
