internal import NIOCore

/// Recognises a request that sends one small message, in the plain form that most HTTP clients write, in bytes from the socket.
///
/// An unrecognised request may still be valid. Nothing is refused here: the HTTP parser and the routes decide.
enum PlainMessageRequest {
    /// The longest head that is recognised, in bytes.
    static let headLimit = 2048
    /// The largest body, in bytes: a body of this size is decoded in well below a millisecond.
    static let bodyLimit = 16 * 1024

    enum Finding: Equatable {
        /// The bytes may become a message's request.
        case incomplete
        case other
        /// A message's request: the bytes of its head, and of its body, which may not have arrived yet.
        case message(head: Int, body: Int)
    }

    /// Returns the kind of request that the bytes begin with.
    static func find(in bytes: UnsafeRawBufferPointer) -> Finding {
        guard bytes.count >= Self.start.count else { return Self.start.starts(with: bytes) ? .incomplete : .other }
        guard bytes.starts(with: Self.start) else { return .other }
        var fields = Fields()
        var position = Self.start.count
        while let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) {
            guard end < Self.headLimit, end > position, bytes[end - 1] == UInt8(ascii: "\r") else { return .other }
            let line = bytes[position..<end - 1]
            position = end + 1
            if line.isEmpty {
                guard let length = fields.length, fields.hasHost, fields.isJSON else { return .other }
                return .message(head: position, body: length)
            }
            guard fields.take(line) else { return .other }
        }
        return bytes.count < Self.headLimit ? .incomplete : .other
    }

    private static let start = Array("POST /v1/messages HTTP/1.1\r\n".utf8)

    /// The fields of a head, read so far.
    private struct Fields {
        var hasHost = false
        var isJSON = false
        var length: Int?

        /// Reads a line. Returns `false` if the line is not a field of a plain request.
        mutating func take(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return false }
            let name = line[..<colon]
            guard name.allSatisfy(Self.isOfName) else { return false }
            var value = line[(colon + 1)...]
            while let first = value.first, Self.isBlank(first) { value.removeFirst() }
            while let last = value.last, Self.isBlank(last) { value.removeLast() }
            guard value.allSatisfy({ (0x20...0x7E).contains($0) }) else { return false }
            if Self.isName(name, "host") {
                defer { self.hasHost = true }
                return !self.hasHost && RequestRules.hosts.contains(String(decoding: value, as: UTF8.self).lowercased())
            } else if Self.isName(name, "content-type") {
                defer { self.isJSON = true }
                return !self.isJSON && RequestRules.isJSON(String(decoding: value, as: UTF8.self))
            } else if Self.isName(name, "content-length") {
                guard self.length == nil else { return false }
                self.length = Self.number(value)
                return self.length != nil
            }
            return !Self.special.contains { Self.isName(name, $0) }
        }

        /// Fields that the HTTP parser or a route acts on.
        private static let special: [StaticString] = [
            "connection", "transfer-encoding", "expect", "origin", "upgrade", "te", "trailer", "content-encoding", "proxy-connection",
        ]

        /// Returns a length, or `nil` if the value is not a number or exceeds the limit.
        private static func number(_ value: Slice<UnsafeRawBufferPointer>) -> Int? {
            guard (1...5).contains(value.count), value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
                return nil
            }
            let number = value.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return number <= PlainMessageRequest.bodyLimit ? number : nil
        }

        private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

        /// Letters, digits and the hyphen, which suffice for all field names in use.
        private static func isOfName(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"):
                true
            default: false
            }
        }

        /// Whether a name equals `other`, which is in lower case, regardless of case.
        private static func isName(_ name: Slice<UnsafeRawBufferPointer>, _ other: StaticString) -> Bool {
            guard name.count == other.utf8CodeUnitCount else { return false }
            let other = UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount)
            // A hyphen and a digit have this bit set already; only a capital letter changes.
            return zip(name, other).allSatisfy { $0 | 0x20 == $1 }
        }
    }
}
