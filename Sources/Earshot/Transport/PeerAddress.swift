package import EarshotCore
package import NIOCore

extension PeerAddress {
    /// Creates an address from the numeric form. The zone is kept only for link-local addresses.
    package init?(host: String, interface: String, port: UInt16) {
        guard port > 0, let address = try? SocketAddress(ipAddress: host, port: Int(port)) else { return nil }
        let isLinkLocal = LocalLinks.bytes(address).map(Self.isLinkLocal) == true
        self.init(host: host, zone: isLinkLocal ? interface : nil, port: port)
    }

    /// The address for `connect`; `nil` if the zone's interface is gone.
    package var socketAddress: SocketAddress? {
        guard let zone else { return try? SocketAddress(ipAddress: self.host, port: Int(self.port)) }
        // Both are numeric, so this uses no name server. The resolver converts the zone into its index.
        return try? SocketAddress.makeAddressResolvingHost("\(self.host)%\(zone)", port: Int(self.port))
    }

    /// Whether an address is in fe80::/10 (RFC 4291 section 2.5.6).
    private static func isLinkLocal(_ address: [UInt8]) -> Bool {
        address.count == 16 && address[0] == 0xFE && address[1] & 0xC0 == 0x80
    }
}
