package import EarshotCore
package import NIOCore

extension PeerAddress {
    /// An address from the numeric form; the zone is kept only where it means something.
    package init?(host: String, interface: String, port: UInt16) {
        guard port > 0, let address = try? SocketAddress(ipAddress: host, port: Int(port)) else { return nil }
        let isLinkLocal = LocalLinks.bytes(address).map(Self.isLinkLocal) == true
        self.init(host: host, zone: isLinkLocal ? interface : nil, port: port)
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
