import EarshotCore
import NIOHTTP1

/// A request's meaning, by its method, path and query. Everything else is not found, or not allowed.
enum DeviceRoute: Sendable, Hashable {
    case info
    case register
    case offer(pin: String?)
    case upload(DeviceUpload)
    case cancel(session: String?)

    /// The answer to a request that is none of these.
    enum Fault: Error, Sendable, Equatable {
        case unknownPath
        /// The path takes this method only.
        case method(HTTPMethod)
        case parameters
    }

    private static let prefix = "/api/localsend/"

    init(_ method: HTTPMethod, _ target: String) throws(Fault) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts.first.map(String.init) ?? ""
        guard path.hasPrefix(Self.prefix) else { throw .unknownPath }
        let expected: HTTPMethod
        let name = String(path.dropFirst(Self.prefix.count))
        switch name {
        case "v1/info", "v2/info": expected = .GET
        case "v2/register", "v2/prepare-upload", "v2/upload", "v2/cancel": expected = .POST
        default: throw .unknownPath
        }
        guard method == expected else { throw .method(expected) }
        let query = parts.count > 1 ? Self.query(parts[1]) : [:]
        switch name {
        case "v2/register": self = .register
        case "v2/prepare-upload": self = .offer(pin: query["pin"])
        case "v2/upload":
            guard let session = query["sessionId"], let file = query["fileId"], let token = query["token"],
                [session, file, token].allSatisfy({ (1...LocalSendLimits.idBytes).contains($0.utf8.count) })
            else { throw .parameters }
            self = .upload(DeviceUpload(session: session, file: file, token: token))
        case "v2/cancel": self = .cancel(session: query["sessionId"].flatMap { $0.isEmpty ? nil : $0 })
        default: self = .info
        }
    }

    /// Decodes a query as a form (`+` is a space, a wrong escape stays as it is, the last one of a repeated key counts).
    private static func query(_ text: Substring) -> [String: String] {
        var values: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let key = parts.first else { continue }
            values[self.decoded(key)] = parts.count > 1 ? self.decoded(parts[1]) : ""
        }
        return values
    }

    private static func decoded(_ text: Substring) -> String {
        let bytes = Array(text.utf8)
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = self.digit(bytes[index + 1]),
                let low = self.digit(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                index += 3
            } else {
                decoded.append(bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
                index += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        Character(UnicodeScalar(character)).hexDigitValue.flatMap { UInt8(exactly: $0) }
    }

    /// Returns a value for a query, with all but the unreserved characters escaped (RFC 3986 section 2.3).
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                encoded.append(byte)
            default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
