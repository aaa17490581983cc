public import Earshot
public import Logging

/// Discovery through one fixed backend: DNS-SD (RFC 6763) over multicast DNS (RFC 6762). To be run once.
public struct SingleBackendDiscovery: PeerDiscovery {
    private let output = DiscoveryOutput()
    private let runner: BackendRunner
    private let backend: DiscoveryStatus.Backend

    /// Returns a discovery through the system's avahi-daemon.
    ///
    /// The daemon and the system bus may restart, stop, or start late: the discovery keeps trying, and reports its state as
    /// `DiscoveryEvent.status`. When it has lost its view it reports `DiscoveryEvent.reset`.
    public static func avahi(logger: Logger) -> Self { Self(runner: .avahi(logger: logger), backend: .avahi) }

    /// Returns a discovery through a responder inside the process, for containers and machines without avahi-daemon or a system bus. It
    /// finds peers on the same machine even if only the loopback interface is up.
    public static func embedded(logger: Logger) -> Self { Self(runner: .embedded(logger: logger), backend: .embedded) }

    private init(runner: BackendRunner, backend: DiscoveryStatus.Backend) {
        self.runner = runner
        self.backend = backend
    }

    /// Calls back once all threads that call Avahi have given a sign of life.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { AvahiThread.answer(heartbeat) }

    /// The events, in order, for one reader. The stream ends when `run` does.
    public var events: AsyncStream<DiscoveryEvent> { self.output.events }

    /// Runs until its task is cancelled, then says goodbye on the network.
    public func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        await self.output.run(self.runner, as: self.backend, plan: DiscoveryPlan(advertisement: advertisement, serviceType: serviceType))
    }
}
