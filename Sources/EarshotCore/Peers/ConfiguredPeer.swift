public import EarshotWire

/// `[PEERID@]host:port`: a peer that is reached without discovery, because the settings name it.
public struct ConfiguredPeer: Sendable, Hashable, CustomStringConvertible {
    /// The peer that must answer there; any where `nil`.
    public let id: PeerID?
    /// A name or a numeric address, without brackets.
    public let host: String
    /// 1 to 65535.
    public let port: UInt16

    /// From its parts, which are in order.
    package init(id: PeerID?, host: String, port: UInt16) {
        self.id = id
        self.host = host
        self.port = port
    }

    /// The written form.
    public var description: String { "\(self.id.map { "\($0)@" } ?? "")\(self.address)" }

    /// The same without its id, as a peer's addresses are listed.
    package var address: String { self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)" }
}
