import EarshotCore
import EarshotWire

/// A device's description of itself: the body of `register`, `info` in an offer, the answers of `register` and `info`, and the
/// announcement. They differ in their optional fields only. Unknown fields are ignored.
struct InfoMessage: Codable, Sendable, Hashable {
    var alias: String
    var version: String
    var deviceModel: String?
    var deviceType: String?
    /// The SHA-256 of the certificate in hexadecimal digits, by which the sender is known. Answers of `register` may lack it.
    var fingerprint: String?
    /// Answers have no port.
    var port: UInt16?
    /// `https` or `http`. Answers have no protocol.
    var `protocol`: String?
    /// Whether a web page for downloads is served.
    var download: Bool?
    /// In datagrams only: whether an answer is wanted.
    var announce: Bool?

    /// Creates this machine's description. Answers have neither `port` nor protocol.
    init(name: String, fingerprint: String, port: UInt16? = nil, announce: Bool? = nil) {
        self.alias = name.cut(toBytes: EarshotLimits.deviceAliasLength)
        self.version = LocalSendLimits.version
        self.deviceModel = LocalSendLimits.deviceModel
        self.deviceType = LocalSendLimits.deviceType
        self.fingerprint = fingerprint
        self.port = port
        self.protocol = port == nil ? nil : "https"
        self.download = false
        self.announce = announce
    }

    /// The description as the node takes it.
    /// - Throws: if the alias is empty or the protocol is unknown.
    var info: DeviceInfo {
        get throws(InvalidMessage) {
            guard !self.alias.isEmpty else { throw InvalidMessage("the alias is empty") }
            let isEncrypted: Bool
            switch self.protocol {
            case nil, "https": isEncrypted = true
            case "http": isEncrypted = false
            default: throw InvalidMessage("the protocol is neither https nor http")
            }
            return DeviceInfo(
                alias: self.alias.cut(toBytes: EarshotLimits.deviceAliasLength),
                version: self.version.cut(toBytes: LocalSendLimits.descriptionBytes),
                model: self.deviceModel?.cut(toBytes: LocalSendLimits.descriptionBytes),
                kind: self.deviceType?.lowercased().cut(toBytes: LocalSendLimits.descriptionBytes),
                fingerprint: self.fingerprint.flatMap(Hexadecimal.digest)?.hexadecimal ?? "",
                port: self.port == 0 ? nil : self.port, isEncrypted: isEncrypted)
        }
    }
}

/// The reason why a message is not LocalSend's, for the answer and the log.
struct InvalidMessage: Error, Sendable, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Hexadecimal digits of a SHA-256.
enum Hexadecimal {
    /// Returns the 32 bytes of 64 digits in either case; `nil` for any other text.
    static func digest(_ text: String) -> [UInt8]? {
        guard text.utf8.count == 64 else { return nil }
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            guard let digit = Self.digit(character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return bytes
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension String {
    /// Returns the longest beginning of whole characters within `limit` bytes. A first character that is longer itself is cut between its
    /// scalars.
    func cut(toBytes limit: Int) -> String {
        guard self.utf8.count > limit else { return self }
        var end = self.startIndex
        var bytes = 0
        while end < self.endIndex {
            let next = self.index(after: end)
            bytes += self[end..<next].utf8.count
            guard bytes <= limit else { break }
            end = next
        }
        guard end == self.startIndex else { return String(self[..<end]) }
        var scalars = String.UnicodeScalarView()
        bytes = 0
        for scalar in self.unicodeScalars {
            bytes += UTF8.width(scalar)
            guard bytes <= limit else { break }
            scalars.append(scalar)
        }
        return String(scalars)
    }
}
