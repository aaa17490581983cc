package import NIOCore

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
