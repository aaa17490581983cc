public import EarshotWire

/// `[PEERID@]host:port`: a peer named by the settings, which is reached without discovery.
public struct ConfiguredPeer: Sendable, Hashable, CustomStringConvertible {
    /// The peer that must answer there; `nil` accepts any peer.
    public let id: PeerID?
    /// A host name or a numeric address, without brackets.
    public let host: String
    /// 1 to 65535.
    public let port: UInt16

    /// Creates a configured peer from valid parts.
    package init(id: PeerID?, host: String, port: UInt16) {
        self.id = id
        self.host = host
        self.port = port
    }

    /// The written form.
    public var description: String { "\(self.id.map { "\($0)@" } ?? "")\(self.address)" }

    /// The address without the id, as listed among a peer's addresses.
    package var address: String { self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)" }
}
