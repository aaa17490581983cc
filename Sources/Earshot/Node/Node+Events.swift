import EarshotWire
import FoundationEssentials

/// Publishing events and handling those of discovery.
extension Node {
    /// The current time by this machine's clock.
    var now: Date { self.configuration.now?() ?? Date() }

    func publish(_ kind: NodeEvent.Kind, cost: Int? = nil, isLive: Bool = false) {
        self.counters.count(kind)
        self.events.append(kind, at: self.now, cost: cost ?? Self.eventCost(kind), isLive: isLive)
    }

    /// Publishes several events that happened together.
    func publish(_ kinds: [NodeEvent.Kind], cost: (NodeEvent.Kind) -> Int = Node.eventCost, isLive: Bool = false) {
        guard !kinds.isEmpty else { return }
        for kind in kinds { self.counters.count(kind) }
        self.events.append(kinds, at: self.now, cost: cost, isLive: isLive)
    }

    /// Publishes an event of the program that runs the node; only readers that ask for such events receive it.
    package func publish(program content: any Sendable) {
        self.counters.events &+= 1
        self.events.append(program: content, at: self.now)
    }

    /// Returns the approximate memory cost of an event about a peer, in bytes. The peer's own data is of variable size.
    static func eventCost(of peer: Peer) -> Int {
        512 + peer.addresses.reduce(0) { $0 + 64 + $1.utf8.count }
            + peer.discoveryInfo.reduce(0) { $0 + 64 + $1.key.utf8.count + $1.value.utf8.count }
    }

    /// Passes an event of discovery to the core, with its addresses parsed.
    func handleDiscovery(_ event: DiscoveryEvent) {
        switch event {
        case .found(let backend, let sighting):
            let addresses = sighting.addresses.compactMap {
                PeerAddress(host: $0, interface: sighting.interfaceName, port: sighting.port)
            }
            // Asking for this machine's addresses costs a system call, and only sightings of the node's own id need them.
            let isOurs = DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName)?.id == self.id
            let isThisMachine = isOurs && addresses.contains(where: LocalLinks.current().isOwn)
            self.handle(
                .discovery(
                    .found(backend, SeenAddresses(sighting: sighting, addresses: addresses, isThisMachine: isThisMachine))))
        case .lost(let backend, let key): self.handle(.discovery(.lost(backend, key)))
        case .reset(let backend): self.handle(.discovery(.reset(backend)))
        case .status(let status): self.handle(.discovery(.status(status)))
        case .advertised(let instanceName): self.handle(.discovery(.advertised(instanceName: instanceName)))
        }
    }
}
