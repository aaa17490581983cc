import EarshotWire
import NIOCore
import OrderedCollections
import Synchronization

/// Settings that change while the node runs.
extension Node {
    /// Takes up a new configuration, and tells of it as an event. Never half of it: what is wrong with it is found before anything changes.
    ///
    /// What is read when it is needed (policies, limits, times, the name and the preference of new connections) counts from now on; what is
    /// under way (configured peers, discovery) is brought in line. The port, the service type and the state directory stay as they are.
    ///
    /// - Parameters:
    ///   - configuration: the new one.
    ///   - changed: the names of the settings that differ, for the event.
    ///   - needsRestart: those of them that count from the next start on.
    ///   - restartsDiscovery: whether discovery starts anew even if what it does stays the same.
    ///   - makeDiscovery: makes the discovery to go on with, `nil` for none; called once if discovery has to start anew.
    /// - Throws: `invalid-parameter` for values outside their limits.
    public func apply(
        _ configuration: Configuration, changed: [String], needsRestart: [String], restartsDiscovery: Bool = false,
        makeDiscovery: () -> (any PeerDiscovery)?
    ) async throws(EarshotError) {
        try DiscoveryInfo.validate(configuration.discoveryInfo)
        if let directory = configuration.receiveDirectory { try Publisher.check(directory) }
        guard !self.isStopping else { throw Self.stopping }
        let old = self.configuration
        var new = configuration
        new.port = old.port
        new.portIsFixed = old.portIsFixed
        new.serviceType = old.serviceType
        new.stateDirectory = old.stateDirectory
        new.identity = old.identity
        new.timers = old.timers
        self.configuration = new
        self.transport.use(new)
        self.handle(.settings(new.core))
        if restartsDiscovery || self.discoveryRequest(old) != self.discoveryRequest(new) { self.restartDiscovery(with: makeDiscovery()) }
        if new.displayName != old.displayName { self.renewConnections() }
        await self.store.use(new.inboxLimits)
        if new.inboxAge < old.inboxAge { self.pruneInbox() }
        // When all of it counts.
        self.publish(.settingsReloaded(changed: changed, needsRestart: needsRestart))
    }

    /// Has received files put into a directory where none can be put yet when the node is made, such as one of a disk that is mounted later:
    /// until then they stay in the spool. Before ``start()``; ``run()`` tries once more to put there what has stayed.
    package func awaitReceiveDirectory(_ directory: String) {
        self.configuration.receiveDirectory = directory
        self.transport.use(self.configuration)
        self.handle(.settings(self.configuration.core))
    }

    /// A name is proven with each connection, and not said again on it. Members of a session with whom nothing is under way learn the new
    /// one at once, by a new connection; the others with their next one.
    private func renewConnections() {
        for link in self.core.renewableLinks { self.links[link]?.close() }
    }

    // MARK: Discovery under way

    /// What discovery does under a configuration.
    struct DiscoveryRequest: Sendable, Hashable {
        let advertisement: Advertisement?
        let serviceType: String?
    }

    private func discoveryRequest(_ configuration: Configuration) -> DiscoveryRequest {
        let name = configuration.displayName
        let advertisement = Advertisement(
            instanceName: name.description, serviceType: configuration.serviceType.description, port: self.listeningPort,
            txt: DiscoveryInfo.record(id: self.id, name: name, pairs: configuration.discoveryInfo))
        return DiscoveryRequest(
            advertisement: configuration.advertise ? advertisement : nil,
            serviceType: configuration.browse ? configuration.serviceType.description : nil)
    }

    /// Ends the discovery that runs, which says goodbye on the network, and has `next` begin then: the two at a time would take each
    /// other's name for a collision.
    private func restartDiscovery(with next: (any PeerDiscovery)?) {
        self.discovery = next
        self.isDiscoveryReplaced = true
        guard let stopper = self.discoveryStopper else {
            self.discoveryEnded()
            return
        }
        stopper.finish()
    }

    /// Runs `discovery` beside the node, until it is told to stop or the node ends.
    func beginDiscovery() {
        guard !self.isStopping else { return }
        guard let discovery = self.discovery else {
            self.handleDiscovery(.status(DiscoveryStatus(backend: .none, state: .off)))
            return
        }
        let request = self.discoveryRequest(self.configuration)
        let (stop, stopper) = AsyncStream<Never>.makeStream()
        self.discoveryStopper = stopper
        self.spawn { [input] in
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await event in discovery.events { input.yield(.discovery(event)) }
                }
                await withTaskGroup(of: Void.self) { run in
                    run.addTask { await discovery.run(advertising: request.advertisement, browsing: request.serviceType) }
                    run.addTask { for await _ in stop {} }
                    await run.next()
                    run.cancelAll()
                }
                // Discovery's stream ends with its run; should it not, it is not waited for.
                group.cancelAll()
            }
            input.yield(.discoveryEnded)
        }
    }

    /// Discovery has said goodbye. What it saw is believed for as long as a loss is forgiven: the next discovery sees the same before that.
    func discoveryEnded() {
        self.discoveryStopper = nil
        // One that ends of its own accord has nothing to follow it: it runs once.
        guard self.isDiscoveryReplaced else { return }
        self.isDiscoveryReplaced = false
        self.handle(.discovery(.advertised(instanceName: nil)))
        for backend in DiscoveryStatus.Backend.allCases { self.handleDiscovery(.reset(backend)) }
        self.beginDiscovery()
    }
}

/// The discovery that a node has now, for callers outside the node's queue.
final class CurrentDiscovery: Sendable {
    private let state: Mutex<(any PeerDiscovery)?>

    init(_ discovery: (any PeerDiscovery)?) {
        self.state = Mutex(discovery)
    }

    var value: (any PeerDiscovery)? {
        get { self.state.withLock { $0 } }
        set { self.state.withLock { $0 = newValue } }
    }
}
