internal import NIOCore

/// Recognises a request that sends one small message, in bytes as they come from the socket, where it is as plain as programs write it.
///
/// What it does not recognise may be in order all the same: that is for the HTTP parser to say, and nothing is refused here.
enum PlainMessageRequest {
    /// The longest head that is looked at, in bytes.
    static let headLimit = 2048
    /// The largest body, in bytes: what is read and decoded in well below a millisecond.
    static let bodyLimit = 16 * 1024

    enum Finding: Equatable {
        /// Nothing yet that speaks against it.
        case incomplete
        case other
        /// A message's head, and how many bytes of body follow it, of which some may be still to come.
        case message(head: Int, body: Int)
    }

    /// What the bytes begin with.
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

    /// What has been seen of a head.
    private struct Fields {
        var hasHost = false
        var isJSON = false
        var length: Int?

        /// Whether a line is a field with which the request is still a plain one.
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

        /// Fields with which a route, or the parser, has to do.
        private static let special: [StaticString] = [
            "connection", "transfer-encoding", "expect", "origin", "upgrade", "te", "trailer", "content-encoding", "proxy-connection",
        ]

        /// A length that is small enough.
        private static func number(_ value: Slice<UnsafeRawBufferPointer>) -> Int? {
            guard (1...5).contains(value.count), value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
                return nil
            }
            let number = value.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return number <= PlainMessageRequest.bodyLimit ? number : nil
        }

        private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

        /// Letters, digits and the hyphen: all names that are in use.
        private static func isOfName(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"):
                true
            default: false
            }
        }

        /// Whether a name is that one, given in lower case.
        private static func isName(_ name: Slice<UnsafeRawBufferPointer>, _ other: StaticString) -> Bool {
            guard name.count == other.utf8CodeUnitCount else { return false }
            let other = UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount)
            // A hyphen has the bit already; of what a name may hold nothing but a letter gains it.
            return zip(name, other).allSatisfy { $0 | 0x20 == $1 }
        }
    }
}
