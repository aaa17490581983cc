public import Earshot
public import Logging

/// Discovery by a responder inside the process, for containers and machines with no avahi-daemon or no system bus; finds peers on the
/// same machine with nothing but the loopback interface up. To be run once.
public struct EmbeddedDiscovery: PeerDiscovery {
    private let output = DiscoveryOutput()
    private let runner: BackendRunner

    /// Discovery that has not begun.
    public init(logger: Logger) {
        self.runner = .embedded(logger: logger)
    }

    /// A sign of life of the threads that Avahi's calls are made on.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { AvahiThread.answer(heartbeat) }

    /// What happens, in order; one reader. Ends when `run` does.
    public var events: AsyncStream<DiscoveryEvent> { self.output.events }

    /// Works until its task is cancelled, and says goodbye on the network then.
    public func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        await self.output.run(self.runner, as: .embedded, plan: DiscoveryPlan(advertisement: advertisement, serviceType: serviceType))
    }
}
