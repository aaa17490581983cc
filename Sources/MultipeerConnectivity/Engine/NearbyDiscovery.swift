import Earshot
import EarshotDiscovery
import Logging
import Synchronization

/// The node's discovery: the program's advertisers and browsers, of any service types, each while it runs.
///
/// All nodes of this module share one service type, which identifies the protocol between them. The advertised types are the program's.
final class NearbyDiscovery: PeerDiscovery {
    /// An event for a browser.
    enum Sighted: Sendable {
        case found(PeerID, name: String, info: [String: String])
        case lost(PeerID)
        case failed(String)
    }

    private enum Order: Sendable {
        case advertise(ServiceToken, type: String, [TXTPair], failed: @Sendable (String) -> Void)
        case browse(ServiceToken, type: String, @Sendable (Sighted) -> Void)
        case stop(ServiceToken)
    }

    let events: AsyncStream<DiscoveryEvent>
    private let output: AsyncStream<DiscoveryEvent>.Continuation
    private let orders: AsyncStream<Order>
    private let order: AsyncStream<Order>.Continuation
    private let make: @Sendable () -> any PeerDiscovery

    init(make: @escaping @Sendable () -> any PeerDiscovery) {
        self.make = make
        (self.events, self.output) = AsyncStream.makeStream()
        (self.orders, self.order) = AsyncStream.makeStream()
    }

    func advertise(_ token: ServiceToken, type: String, _ pairs: [TXTPair], failed: @escaping @Sendable (String) -> Void) {
        self.order.yield(.advertise(token, type: type, pairs, failed: failed))
    }

    func browse(_ token: ServiceToken, type: String, _ sighted: @escaping @Sendable (Sighted) -> Void) {
        self.order.yield(.browse(token, type: type, sighted))
    }

    func stop(_ token: ServiceToken) { self.order.yield(.stop(token)) }

    /// Runs until its task is cancelled. The advertisements have then been removed from the network.
    func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        var running: [ServiceToken: Task<Void, Never>] = [:]
        for await order in self.orders {
            switch order {
            case .advertise(let token, let type, let pairs, let failed):
                guard let advertisement else { continue }
                let own = Advertisement(
                    instanceName: advertisement.instanceName, serviceType: type, port: advertisement.port, txt: advertisement.txt + pairs)
                running[token] = self.start(advertising: own, browsing: nil) { event in
                    if case .status(let status) = event, status.state == .unavailable { failed(status.error ?? "discovery does not work") }
                }
            case .browse(let token, let type, let sighted):
                let crowd = Mutex(Crowd())
                running[token] = self.start(advertising: nil, browsing: type) { [crowd = Shared(crowd)] event in
                    for news in crowd.value.withLock({ $0.news(of: event) }) { sighted(news) }
                }
            case .stop(let token): running.removeValue(forKey: token)?.cancel()
            }
        }
        for task in running.values { task.cancel() }
        for task in running.values { await task.value }
        self.output.finish()
    }

    private func start(
        advertising advertisement: Advertisement?, browsing serviceType: String?, _ hear: @escaping @Sendable (DiscoveryEvent) -> Void
    ) -> Task<Void, Never> {
        let discovery = self.make()
        let output = self.output
        return Task {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    var relay = serviceType.map { Relay(serviceType: $0) }
                    for await event in discovery.events {
                        for told in relay?.told(event) ?? [] { output.yield(told) }
                        hear(event)
                    }
                }
                await discovery.run(advertising: advertisement, browsing: serviceType)
            }
        }
    }
}

/// A value that closures share.
private final class Shared<Value: ~Copyable & Sendable>: Sendable {
    let value: Mutex<Value>
    init(_ value: consuming Mutex<Value>) { self.value = value }
}

/// Converts a browser's sightings for the node, because an instance may have the same name under several types.
struct Relay {
    /// A sighting by one backend. While one backend takes over from another, both see the same instance, and the node counts both.
    private struct Seen: Hashable {
        let backend: DiscoveryStatus.Backend
        let key: Sighting.Key
    }

    let serviceType: String
    private var seen: Set<Seen> = []

    init(serviceType: String) { self.serviceType = serviceType }

    mutating func told(_ event: DiscoveryEvent) -> [DiscoveryEvent] {
        switch event {
        case .found(let backend, let sighting):
            let key = self.own(sighting.key)
            self.seen.insert(Seen(backend: backend, key: key))
            return [
                .found(
                    backend,
                    Sighting(
                        key: key, interfaceName: sighting.interfaceName, isLoopback: sighting.isLoopback, addresses: sighting.addresses,
                        port: sighting.port, txt: sighting.txt))
            ]
        case .lost(let backend, let key):
            let key = self.own(key)
            self.seen.remove(Seen(backend: backend, key: key))
            return [.lost(backend, key)]
        case .reset(let backend):
            // Reported one at a time, because another browser of the node may have seen other instances with the same backend.
            let gone = self.seen.filter { $0.backend == backend }
            self.seen.subtract(gone)
            return gone.map { .lost(backend, $0.key) }
        case .status, .advertised: return []
        }
    }

    private func own(_ key: Sighting.Key) -> Sighting.Key {
        Sighting.Key(
            instanceName: "\(key.instanceName)._\(self.serviceType)", interfaceIndex: key.interfaceIndex, overIPv6: key.overIPv6)
    }
}

/// The peers that a browser sees. A peer is found with its first sighting, and lost with its last.
struct Crowd {
    private var sightings: [Sighting.Key: PeerID] = [:]
    private var backends: [Sighting.Key: DiscoveryStatus.Backend] = [:]
    /// The reported state of each peer. A program listens on one port while it runs.
    private var told: [PeerID: (port: UInt16, info: [String: String])] = [:]

    /// Returns the changes for the browser. A peer that has restarted, or that changed its discovery info, is reported as lost and found.
    mutating func news(of event: DiscoveryEvent) -> [NearbyDiscovery.Sighted] {
        switch event {
        case .found(let backend, let sighting):
            guard let (id, name, info) = ServiceNames.read(sighting.txt) else { return self.lose(sighting.key) }
            // Another peer has taken over the name.
            let lost = self.sightings[sighting.key].map { $0 == id ? [] : self.lose(sighting.key) } ?? []
            let isSame = self.sightings[sighting.key] == id
            self.sightings[sighting.key] = id
            self.backends[sighting.key] = backend
            let found: [NearbyDiscovery.Sighted] = [.found(id, name: name, info: info)]
            guard let told = self.told.updateValue((sighting.port, info), forKey: id) else { return lost + found }
            if told.port != sighting.port || isSame && told.info != info { return lost + [.lost(id)] + found }
            self.told[id] = told
            return lost
        case .lost(_, let key): return self.lose(key)
        case .reset(let backend): return self.backends.filter { $0.value == backend }.keys.flatMap { self.lose($0) }
        case .status(let status): return status.state == .unavailable ? [.failed(status.error ?? "discovery does not work")] : []
        case .advertised: return []
        }
    }

    private mutating func lose(_ key: Sighting.Key) -> [NearbyDiscovery.Sighted] {
        self.backends[key] = nil
        guard let id = self.sightings.removeValue(forKey: key), !self.sightings.values.contains(id) else { return [] }
        self.told[id] = nil
        return [.lost(id)]
    }
}
