package import EarshotWire

/// A numeric address at which a peer can be dialled.
package struct PeerAddress: Sendable, Hashable, CustomStringConvertible {
    /// The numeric host, such as `10.77.0.2` or `fe80::1`.
    package let host: String
    /// The interface of a link-local IPv6 address (RFC 4007).
    package let zone: String?
    /// 1 to 65535.
    package let port: UInt16

    package init(host: String, zone: String?, port: UInt16) {
        self.host = host
        self.zone = zone
        self.port = port
    }

    package var description: String {
        guard self.isIPv6 else { return "\(self.host):\(self.port)" }
        return "[\(self.host)\(self.zone.map { "%" + $0 } ?? "")]:\(self.port)"
    }

    package var isIPv6: Bool { self.host.utf8.contains(UInt8(ascii: ":")) }
}

/// The error of a dial that another machine answered.
package struct AnotherAnswers: Error, Sendable, Hashable, CustomStringConvertible {
    package let address: PeerAddress
    /// The id of the key that the machine presented, not proven.
    package let id: PeerID

    package init(at address: PeerAddress, id: PeerID) {
        self.address = address
        self.id = id
    }

    package var description: String { "the peer that answered at \(self.address) is \(self.id), not the one that was dialled" }
}
