import EarshotWire
import NIOCore
import OrderedCollections
import Synchronization

/// Changing settings while the node runs.
extension Node {
    /// Applies a new configuration. All values are checked before anything changes, so a configuration is
    /// never applied in part.
    ///
    /// Values that are read when needed (policies, limits, times, the name and the encryption of new connections) apply from now on.
    /// Running parts (configured peers, discovery) are updated. The port, the service type and the state directory do not change.
    ///
    /// - Parameters:
    ///   - configuration: The new configuration.
    ///   - restartsDiscovery: Whether discovery restarts even if its own settings are the same.
    ///   - makeDiscovery: Makes the new discovery, or returns `nil` for none. Called once, if discovery has to restart.
    /// - Throws: `invalid-parameter` for values outside their limits, `unavailable` when the node stops.
    package func apply(
        _ configuration: Configuration, restartsDiscovery: Bool = false, makeDiscovery: () -> (any PeerDiscovery)?
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
        new.localSend.port = old.localSend.port
        self.configuration = new
        self.transport.use(new)
        self.handle(.settings(new.core))
        if restartsDiscovery || self.discoveryRequest(old) != self.discoveryRequest(new) { self.restartDiscovery(with: makeDiscovery()) }
        if new.displayName != old.displayName { self.renewConnections() }
        if new.localSend.isEnabled != old.localSend.isEnabled { self.switchDevices(on: new.localSend.isEnabled) }
        await self.store.use(new.inboxLimits)
        if new.inboxAge < old.inboxAge { self.pruneInbox() }
    }

    /// Sets a directory for received files that is not usable when the node is created, such as one on a disk that is mounted later. Until
    /// it is usable, files stay in the spool. Call this before ``start()``; ``run()`` tries once more to move the remaining files there.
    package func awaitReceiveDirectory(_ directory: String) {
        self.configuration.receiveDirectory = directory
        self.transport.use(self.configuration)
        self.handle(.settings(self.configuration.core))
    }

    /// Closes connections so that peers learn a new name. A name is proven when a connection is made, and does not change on that
    /// connection. Idle members of sessions learn the new name immediately, on a new connection. The others learn it on their next one.
    private func renewConnections() {
        for link in self.core.renewableLinks { self.links[link]?.close() }
    }

    // MARK: Restarting discovery

    /// The settings of discovery under a configuration.
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

    /// Ends the current discovery, which then announces its departure on the network. `next` starts after that: two at the same time would
    /// treat each other's name as a collision.
    private func restartDiscovery(with next: (any PeerDiscovery)?) {
        self.discovery = next
        self.isDiscoveryReplaced = true
        guard let stopper = self.discoveryStopper else {
            self.discoveryEnded()
            return
        }
        stopper.finish()
    }

    /// Runs `discovery` in a job, until it is stopped or the node ends.
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
                // Discovery's stream should end with its run. If it does not, this does not wait for it.
                group.cancelAll()
            }
            input.yield(.discoveryEnded)
        }
    }

    /// Handles the end of discovery. Its sightings remain valid for as long as a lost peer is kept, because the next discovery is expected
    /// to see the same peers.
    func discoveryEnded() {
        self.discoveryStopper = nil
        // A discovery that ends on its own is not restarted.
        guard self.isDiscoveryReplaced else { return }
        self.isDiscoveryReplaced = false
        self.handle(.discovery(.advertised(instanceName: nil)))
        for backend in DiscoveryStatus.Backend.allCases { self.handleDiscovery(.reset(backend)) }
        self.beginDiscovery()
    }
}

/// The node's current discovery, for callers outside the node's queue.
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
