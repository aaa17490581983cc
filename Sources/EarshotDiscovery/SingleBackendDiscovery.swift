public import Earshot
public import Logging

/// Discovery through one backend, and no other: DNS-SD (RFC 6763) over multicast DNS (RFC 6762). To be run once.
public struct SingleBackendDiscovery: PeerDiscovery {
    private let output = DiscoveryOutput()
    private let runner: BackendRunner
    private let backend: DiscoveryStatus.Backend

    /// Through the system's avahi-daemon.
    ///
    /// Survives the daemon and the system bus restarting, stopping and starting late: it goes on trying, and says where it stands as
    /// `DiscoveryEvent.status`. When it lost its view it says `DiscoveryEvent.reset`.
    public static func avahi(logger: Logger) -> Self { Self(runner: .avahi(logger: logger), backend: .avahi) }

    /// By a responder inside the process, for containers and machines with no avahi-daemon or no system bus; finds peers on the same
    /// machine with nothing but the loopback interface up.
    public static func embedded(logger: Logger) -> Self { Self(runner: .embedded(logger: logger), backend: .embedded) }

    private init(runner: BackendRunner, backend: DiscoveryStatus.Backend) {
        self.runner = runner
        self.backend = backend
    }

    /// A sign of life of the threads that Avahi's calls are made on.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { AvahiThread.answer(heartbeat) }

    /// What happens, in order; one reader. Ends when `run` does.
    public var events: AsyncStream<DiscoveryEvent> { self.output.events }

    /// Works until its task is cancelled, and says goodbye on the network then.
    public func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        await self.output.run(self.runner, as: self.backend, plan: DiscoveryPlan(advertisement: advertisement, serviceType: serviceType))
    }
}
