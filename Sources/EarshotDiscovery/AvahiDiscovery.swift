public import Earshot
public import Logging

/// Discovery through the system's avahi-daemon (DNS-SD, RFC 6763, over multicast DNS, RFC 6762).
///
/// Survives the daemon and the system bus restarting, stopping and starting late: it goes on trying, and says where it stands as
/// `DiscoveryEvent.status`. When it lost its view it says `DiscoveryEvent.reset`. To be run once.
public struct AvahiDiscovery: PeerDiscovery {
    private let output = DiscoveryOutput()
    private let runner: BackendRunner

    /// Discovery that has not begun.
    public init(logger: Logger) {
        self.runner = .avahi(logger: logger)
    }

    /// A sign of life of the threads that Avahi's calls are made on.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { AvahiThread.answer(heartbeat) }

    /// What happens, in order; one reader. Ends when `run` does.
    public var events: AsyncStream<DiscoveryEvent> { self.output.events }

    /// Works until its task is cancelled, and says goodbye on the network then.
    public func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        await self.output.run(self.runner, as: .avahi, plan: DiscoveryPlan(advertisement: advertisement, serviceType: serviceType))
    }
}
