import FoundationEssentials

/// Bytes that stand as base64 (RFC 4648 section 4) in a JSON string.
package struct Base64Bytes: Hashable, Sendable, Codable {
    /// The bytes themselves.
    package let bytes: [UInt8]

    /// Wraps bytes.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Decodes a base64 string.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let data = Data(base64Encoded: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not base64 (RFC 4648)")
        }
        self.bytes = Array(data)
    }

    /// Encodes a base64 string.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(self.bytes).base64EncodedString())
    }
}
