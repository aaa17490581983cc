package import NIOCore

// How the models stand in archives. What the compiler writes for them finds these before the standard library's.

extension KeyedEncodingContainer {
    /// Bytes, as base64 (RFC 4648 section 4).
    package mutating func encode(_ bytes: [UInt8], forKey key: Key) throws { try self.encode(ByteBuffer(bytes: bytes), forKey: key) }
}

extension KeyedDecodingContainer {
    /// Bytes from base64.
    package func decode(_ type: [UInt8].Type, forKey key: Key) throws -> [UInt8] {
        Array(try self.decode(ByteBuffer.self, forKey: key).readableBytesView)
    }

    /// Bytes from base64.
    package func decode(_ type: ByteBuffer.Type, forKey key: Key) throws -> ByteBuffer {
        // What is missing, or no text, is told as that.
        _ = try self.decode(String.self, forKey: key)
        guard let bytes = try? self.superDecoder(forKey: key).singleValueContainer().decode(ByteBuffer.self) else {
            throw self.fault(key, "not base64")
        }
        return bytes
    }

    /// A word of an enum, where a model can be without one: one that a later version has written is as if it were not there.
    package func decodeIfPresent<Word: RawRepresentable & Decodable>(
        _ type: Word.Type, forKey key: Key
    ) throws -> Word? where Word.RawValue == String {
        try self.decodeIfPresent(String.self, forKey: key).flatMap { Word(rawValue: $0) }
    }

    /// Those of the words that this version knows.
    package func decode<Word: RawRepresentable & Decodable>(
        _ type: [Word].Type, forKey key: Key
    ) throws -> [Word] where Word.RawValue == String {
        try self.decode([String].self, forKey: key).compactMap { Word(rawValue: $0) }
    }

    /// As a word that may be absent: without a code that this version knows there is no failure.
    package func decodeIfPresent(_ type: Peer.Failure.Type, forKey key: Key) throws -> Peer.Failure? {
        guard self.contains(key), !(try self.decodeNil(forKey: key)) else { return nil }
        let fields = try self.nestedContainer(keyedBy: Peer.Failure.CodingKeys.self, forKey: key)
        let message = try fields.decode(String.self, forKey: .message)
        guard let code = EarshotError.Code(rawValue: try fields.decode(String.self, forKey: .code)) else { return nil }
        return Peer.Failure(code: code, message: message)
    }

    /// What is wrong with a field: a lower-case sentence without a full stop.
    package func fault(_ key: Key, _ words: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: self.codingPath + [key], debugDescription: words))
    }
}
