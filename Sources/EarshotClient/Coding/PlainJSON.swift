package import NIOCore

/// Parses plain JSON without a decoder: strings, lists of strings, `true` and `false`.
///
/// Foundation's decoder takes some 15 µs for a small object, which would limit the rate of messages. For anything else (`\u` escapes,
/// numbers, `null`, nested objects, bytes that are not UTF-8), the functions return `nil`, and the caller uses the decoder. Both must agree
/// on all input that this type accepts.
struct PlainJSON {
    private let bytes: UnsafeRawBufferPointer
    private(set) var position = 0

    /// Valid as long as the bytes are.
    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Skips white space, and consumes the byte if it is next.
    mutating func take(_ byte: UInt8) -> Bool {
        self.skipSpace()
        guard self.position < self.bytes.count, self.bytes[self.position] == byte else { return false }
        self.position += 1
        return true
    }

    /// Whether only white space is left.
    mutating func isAtEnd() -> Bool {
        self.skipSpace()
        return self.position == self.bytes.count
    }

    private mutating func skipSpace() {
        while self.position < self.bytes.count {
            switch self.bytes[self.position] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): self.position += 1
            default: return
            }
        }
    }

    /// Parses `true` or `false`.
    mutating func bool() -> Bool? {
        self.skipSpace()
        for (word, value) in [(StaticString("true"), true), ("false", false)] {
            guard self.bytes.count - self.position >= word.utf8CodeUnitCount else { continue }
            let here = self.bytes[self.position..<(self.position + word.utf8CodeUnitCount)]
            guard here.elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)) else { continue }
            self.position += word.utf8CodeUnitCount
            return value
        }
        return nil
    }

    /// Parses a string into its bytes, valid UTF-8.
    mutating func string() -> [UInt8]? {
        guard self.take(UInt8(ascii: "\"")) else { return nil }
        let start = self.position
        var isASCII = true
        while self.position < self.bytes.count {
            let byte = self.bytes[self.position]
            switch byte {
            case UInt8(ascii: "\""):
                let text = self.bytes[start..<self.position]
                self.position += 1
                guard isASCII || String(validating: text, as: UTF8.self) != nil else { return nil }
                return Array(text)
            case UInt8(ascii: "\\"): return self.escapedString(from: start)
            case 0..<0x20: return nil
            default:
                if byte >= 0x80 { isASCII = false }
                self.position += 1
            }
        }
        return nil
    }

    private mutating func escapedString(from start: Int) -> [UInt8]? {
        var text = Array(self.bytes[start..<self.position])
        while self.position < self.bytes.count {
            let byte = self.bytes[self.position]
            self.position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self) == nil ? nil : text
            case UInt8(ascii: "\\"):
                guard self.position < self.bytes.count, let meant = Self.meaning(self.bytes[self.position]) else { return nil }
                text.append(meant)
                self.position += 1
            case 0..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    /// The character of an escape after a backslash (RFC 8259 section 7), except `u`.
    private static func meaning(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: nil
        }
    }
}

extension ByteBuffer {
    /// Writes text as a JSON string, with its quotes.
    package mutating func writeJSONString(_ text: some Sequence<UInt8>) {
        let hexadecimal = Array("0123456789abcdef".utf8)
        self.writeInteger(UInt8(ascii: "\""))
        let isPlain = text.withContiguousStorageIfAvailable { bytes in
            guard bytes.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else { return false }
            self.writeBytes(bytes)
            return true
        }
        if isPlain != true {
            for byte in text {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                    self.writeInteger(UInt8(ascii: "\\"))
                    self.writeInteger(byte)
                case UInt8(ascii: "\n"): self.writeStaticString("\\n")
                case UInt8(ascii: "\t"): self.writeStaticString("\\t")
                case UInt8(ascii: "\r"): self.writeStaticString("\\r")
                case 0..<0x20:
                    self.writeStaticString("\\u00")
                    self.writeInteger(hexadecimal[Int(byte >> 4)])
                    self.writeInteger(hexadecimal[Int(byte & 15)])
                default: self.writeInteger(byte)
                }
            }
        }
        self.writeInteger(UInt8(ascii: "\""))
    }
}
