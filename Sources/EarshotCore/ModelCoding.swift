package import EarshotWire
package import NIOCore

// The encoding of the models in archives. Synthesised code finds these methods before those of the standard library.

extension KeyedEncodingContainer {
    /// Encodes bytes as base64 (RFC 4648 section 4).
    package mutating func encode(_ bytes: [UInt8], forKey key: Key) throws { try self.encode(ByteBuffer(bytes: bytes), forKey: key) }
}

extension KeyedDecodingContainer {
    /// Decodes the kind of a peer. An archive of an earlier release has none.
    package func decode(_ type: PeerID.Kind.Type, forKey key: Key) throws -> PeerID.Kind {
        try self.decodeIfPresent(PeerID.Kind.self, forKey: key) ?? .earshot
    }

    /// Decodes bytes from base64.
    package func decode(_ type: [UInt8].Type, forKey key: Key) throws -> [UInt8] {
        Array(try self.decode(ByteBuffer.self, forKey: key).readableBytesView)
    }

    /// Decodes bytes from base64.
    package func decode(_ type: ByteBuffer.Type, forKey key: Key) throws -> ByteBuffer {
        // Reports a missing value, or a value that is not text, as such.
        _ = try self.decode(String.self, forKey: key)
        guard let bytes = try? self.superDecoder(forKey: key).singleValueContainer().decode(ByteBuffer.self) else {
            throw self.fault(key, "not base64")
        }
        return bytes
    }

    /// Decodes an optional value of an enumeration. A value of a later version counts as absent.
    package func decodeIfPresent<Word: RawRepresentable & Decodable>(
        _ type: Word.Type, forKey key: Key
    ) throws -> Word? where Word.RawValue == String {
        try self.decodeIfPresent(String.self, forKey: key).flatMap { Word(rawValue: $0) }
    }

    /// Decodes the words that this version knows.
    package func decode<Word: RawRepresentable & Decodable>(
        _ type: [Word].Type, forKey key: Key
    ) throws -> [Word] where Word.RawValue == String {
        try self.decode([String].self, forKey: key).compactMap { Word(rawValue: $0) }
    }

    /// Decodes an optional failure. A failure whose code is unknown to this version counts as absent.
    package func decodeIfPresent(_ type: Peer.Failure.Type, forKey key: Key) throws -> Peer.Failure? {
        guard self.contains(key), !(try self.decodeNil(forKey: key)) else { return nil }
        let fields = try self.nestedContainer(keyedBy: Peer.Failure.CodingKeys.self, forKey: key)
        let message = try fields.decode(String.self, forKey: .message)
        guard let code = EarshotError.Code(rawValue: try fields.decode(String.self, forKey: .code)) else { return nil }
        return Peer.Failure(code: code, message: message)
    }

    /// Returns an error for a field. `words` is a lower-case sentence without a full stop.
    package func fault(_ key: Key, _ words: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: self.codingPath + [key], debugDescription: words))
    }
}
