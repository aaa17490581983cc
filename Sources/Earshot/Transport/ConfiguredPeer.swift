public import EarshotCore
internal import EarshotSafety
internal import EarshotWire

extension ConfiguredPeer {
    /// Parses the written form.
    /// - Throws: `invalid-parameter`, with the correct form in the message.
    public init(_ text: String) throws(EarshotError) {
        var rest = text[...]
        var peer: PeerID?
        if let at = rest.firstIndex(of: "@") {
            guard let id = PeerID(earshot: String(rest[..<at])) else {
                throw Self.error(text, "what stands before @ is a peer id of \(PeerID.textLength) characters")
            }
            peer = id
            rest = rest[rest.index(after: at)...]
        }
        guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]), port > 0 else {
            throw Self.error(text, "it ends in a colon and a port from 1 to 65535")
        }
        var host = String(rest[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            throw Self.error(text, "an IPv6 address stands in brackets, as in [fd00::7]:47110")
        }
        guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else {
            throw Self.error(text, "the host is a name or an address")
        }
        self.init(id: peer, host: host, port: port)
    }

    private static func error(_ text: String, _ rule: String) -> EarshotError {
        // Truncated, but long enough for its author to recognise it.
        let shown = String(text.prefix(80)).escapedForDisplay + (text.count > 80 ? "..." : "")
        return EarshotError(.invalidParameter, "\"\(shown)\" is not a peer's address [PEERID@]host:port: \(rule)")
    }
}

extension ConfiguredPeer: Codable {
    /// Decodes the written form.
    /// - Throws: `DecodingError` if it is invalid.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(EarshotError) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.message)
        }
    }

    /// Encodes the written form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}
