/// What a node says of itself on the network: the DNS-SD instance (RFC 6763).
public struct Advertisement: Sendable, Hashable {
    /// The instance name; a collision is renamed (`alice #2`), the display name in the TXT record stays.
    public let instanceName: String
    /// Without underscore or protocol, such as `earshot`.
    public let serviceType: String
    /// The TCP port, 1 to 65535.
    public let port: UInt16
    /// The TXT record's pairs, in order, ours first.
    public let txt: [TXTPair]

    /// An advertisement from its parts.
    public init(instanceName: String, serviceType: String, port: UInt16, txt: [TXTPair]) {
        self.instanceName = instanceName
        self.serviceType = serviceType
        self.port = port
        self.txt = txt
    }
}

/// Advertises one instance and browses for the others; how is its own affair.
public protocol PeerDiscovery: Sendable {
    /// What happens, in order; one reader. Ends when `run` does.
    var events: AsyncStream<DiscoveryEvent> { get }
    /// Works until its task is cancelled; advertises `advertisement` (nothing where `nil`) and browses where asked.
    func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async
    /// Calls back once its thread gets round to it, at once where it has none: a sign of life.
    func answer(_ heartbeat: @escaping @Sendable () -> Void)
}

extension PeerDiscovery {
    /// Without a thread of its own there is nothing that could be stuck.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { heartbeat() }
}
