/// A node's advertisement on the network: the DNS-SD instance (RFC 6763).
public struct Advertisement: Sendable, Hashable {
    /// The instance name. A colliding name is changed (`alice #2`); the display name in the TXT record stays the same.
    public let instanceName: String
    /// The service type without underscore or protocol, such as `earshot`.
    public let serviceType: String
    /// The TCP port, 1 to 65535.
    public let port: UInt16
    /// The TXT record's pairs in order, Earshot's own first.
    public let txt: [TXTPair]

    /// Creates an advertisement from its parts.
    public init(instanceName: String, serviceType: String, port: UInt16, txt: [TXTPair]) {
        self.instanceName = instanceName
        self.serviceType = serviceType
        self.port = port
        self.txt = txt
    }
}

/// An implementation of discovery, which advertises one instance and browses for others.
public protocol PeerDiscovery: Sendable {
    /// The events in order, for one reader. The stream ends when `run` does.
    var events: AsyncStream<DiscoveryEvent> { get }
    /// Runs until its task is cancelled. Advertises `advertisement`, unless it is `nil`, and browses for `serviceType`, unless it is
    /// `nil`.
    func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async
    /// Calls `heartbeat` from its thread, after its pending work; immediately if it has no thread.
    func answer(_ heartbeat: @escaping @Sendable () -> Void)
}

extension PeerDiscovery {
    /// Answers immediately: without its own thread, nothing can be stuck.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { heartbeat() }
}
