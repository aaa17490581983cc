public import EarshotWire
package import NIOCore

internal import EarshotSafety

/// A numeric address at which a peer may listen, such as `10.0.0.7:47110` or `[fe80::1%eth0]:47110`.
package struct PeerAddress: Sendable, Hashable, CustomStringConvertible {
    package let host: String
    /// The interface of a link-local IPv6 address (RFC 4007).
    package let zone: String?
    package let port: UInt16

    /// An address from the numeric form; the zone is kept only where it means something.
    package init?(host: String, interface: String, port: UInt16) {
        guard port > 0, let address = try? SocketAddress(ipAddress: host, port: Int(port)) else { return nil }
        self.host = host
        self.port = port
        self.zone = LocalLinks.bytes(address).map(Self.isLinkLocal) == true ? interface : nil
    }

    package var description: String {
        guard self.host.utf8.contains(UInt8(ascii: ":")) else { return "\(self.host):\(self.port)" }
        return "[\(self.host)\(self.zone.map { "%" + $0 } ?? "")]:\(self.port)"
    }

    /// What `connect` takes; `nil` when the zone's interface is gone.
    package var socketAddress: SocketAddress? {
        guard let zone else { return try? SocketAddress(ipAddress: self.host, port: Int(self.port)) }
        // Both are numeric, so that this asks no name server; the resolver turns the zone into its index.
        return try? SocketAddress.makeAddressResolvingHost("\(self.host)%\(zone)", port: Int(self.port))
    }

    /// fe80::/10 (RFC 4291 section 2.5.6).
    private static func isLinkLocal(_ address: [UInt8]) -> Bool {
        address.count == 16 && address[0] == 0xFE && address[1] & 0xC0 == 0x80
    }
}

/// `[PEERID@]host:port`: a peer that is reached without discovery, by the decision of whoever wrote the settings.
public struct ConfiguredPeer: Sendable, Hashable, CustomStringConvertible {
    /// The peer that must answer there; any where `nil`.
    public let id: PeerID?
    /// A name or a numeric address, without brackets.
    public let host: String
    /// 1 to 65535.
    public let port: UInt16

    /// Reads the written form.
    /// - Throws: `invalid-parameter` with what would be right.
    public init(_ text: String) throws(EarshotError) {
        var rest = text[...]
        if let at = rest.firstIndex(of: "@") {
            guard let id = PeerID(String(rest[..<at])) else {
                throw Self.error(text, "what stands before @ is a peer id of \(PeerID.textLength) characters")
            }
            self.id = id
            rest = rest[rest.index(after: at)...]
        } else {
            self.id = nil
        }
        guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]), port > 0 else {
            throw Self.error(text, "it ends in a colon and a port from 1 to 65535")
        }
        self.port = port
        var host = String(rest[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            throw Self.error(text, "an IPv6 address stands in brackets, as in [fd00::7]:47110")
        }
        guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else {
            throw Self.error(text, "the host is a name or an address")
        }
        self.host = host
    }

    private static func error(_ text: String, _ rule: String) -> EarshotError {
        // Whoever wrote it sees enough of it, whatever it was.
        let shown = String(text.prefix(80)).escapedForDisplay + (text.count > 80 ? "..." : "")
        return EarshotError(.invalidParameter, "\"\(shown)\" is not a peer's address [PEERID@]host:port: \(rule)")
    }

    /// The written form.
    public var description: String {
        let host = self.host.contains(":") ? "[\(self.host)]" : self.host
        return "\(self.id.map { "\($0)@" } ?? "")\(host):\(self.port)"
    }
}
