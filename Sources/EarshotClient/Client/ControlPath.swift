/// Builds the paths of the API.
enum ControlPath {
    /// Returns the text with everything but letters, digits, `-`, `_` and `~` percent-encoded (RFC 3986 section 2.1), as one path segment
    /// or value.
    ///
    /// The dot is encoded too: a peer named `..` must not become a step in the path.
    static func encode(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
                bytes.append(byte)
            default:
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns a path below `/v1` with its segments and query encoded; query items without a value are omitted.
    static func path(_ segments: [String], query: [(name: String, value: String?)] = []) -> String {
        let items = query.compactMap { item in item.value.map { "\(item.name)=\(Self.encode($0))" } }
        let path = ControlAPI.pathPrefix + segments.map { "/" + Self.encode($0) }.joined()
        return items.isEmpty ? path : path + "?" + items.joined(separator: "&")
    }
}
