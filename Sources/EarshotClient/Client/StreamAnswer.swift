import NIOCore

/// The head of an answer on a ``StreamConnection`` (RFC 9112 sections 4 and 5).
struct StreamAnswer: Sendable, Hashable {
    let status: Int
    /// The fields, by their names in lower case.
    let fields: [String: String]

    /// The length of the body in bytes, if the body is not chunked.
    var contentLength: Int? { self.fields["content-length"].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil } }

    /// Whether the bytes are the beginning of an answer, or begin with an answer's first bytes.
    static func mayBegin(_ bytes: ByteBufferView) -> Bool { zip(bytes, "HTTP/1.".utf8).allSatisfy { $0 == $1 } }

    /// Returns the length of the head; `nil` if its end is missing.
    static func length(of bytes: ByteBufferView) -> Int? {
        var line = 0
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
            // The empty line ends the head.
            if index - line == 1 { return index + 1 }
            line = index + 1
        }
        return nil
    }

    /// Parses a head with its empty line; `nil` if the bytes are not a head.
    init?(_ head: ByteBuffer) {
        let lines = String(decoding: head.readableBytesView, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: true)
        guard let words = lines.first?.split(separator: " ", maxSplits: 2), words.count >= 2, words[0].hasPrefix("HTTP/1."),
            let status = Int(words[1]), (100..<600).contains(status)
        else { return nil }
        self.status = status
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields[line[..<colon].lowercased()] = String(value)
        }
        self.fields = fields
    }
}

/// The line before a chunk of a body, with the end of the previous chunk (RFC 9112 section 7.1).
enum ChunkHead {
    /// Returns the length of the line; `nil` if its end is missing.
    static func length(of bytes: ByteBufferView, isFirst: Bool) -> Int? {
        var lines = isFirst ? 1 : 2
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
            lines -= 1
            if lines == 0 { return index + 1 }
        }
        return nil
    }

    /// Returns the chunk's length in bytes, 0 at the end of the body; `nil` if the bytes are not a chunk's line.
    static func chunk(_ bytes: ByteBufferView, isFirst: Bool) -> Int? {
        var text = Substring(decoding: bytes, as: UTF8.self)
        if !isFirst {
            guard text.hasPrefix("\r\n") else { return nil }
            text = text.dropFirst()
        }
        let digits = text.prefix { $0.isHexDigit }
        guard text.dropFirst(digits.count).first.map({ $0 == "\r\n" || $0 == ";" }) == true else { return nil }
        return Int(digits, radix: 16)
    }
}
