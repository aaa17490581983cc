import EarshotWire

/// The state of discovery, and its sightings of peers.
struct DiscoveryState: Sendable {
    /// The result for a peer that only discovery knows.
    enum Admission: Equatable {
        case admitted
        case full
        /// There was room for the last peer. The warning is logged once until there is room again: an attacker who advertises thousands of
        /// peers must not fill the log too.
        case newlyFull
    }

    private(set) var status: DiscoveryStatus
    private(set) var instanceName: String?
    /// The peer of each sighting, so that a loss finds the record.
    private var peers: [SightingKey: PeerID] = [:]
    /// The peers that are listed only because discovery sees them.
    private var unknown: Set<PeerID> = []
    private var isFull = false

    init(isOn: Bool) {
        self.status = DiscoveryStatus(backend: .none, state: isOn ? .starting : .off)
    }

    var sightings: Int { self.peers.count }
    /// The number of peers that are listed only because discovery sees them.
    var count: Int { self.unknown.count }

    /// Sets the status. Returns `false` if it was the same before.
    mutating func note(_ status: DiscoveryStatus) -> Bool {
        defer { self.status = status }
        return self.status != status
    }

    mutating func advertised(as instanceName: String?) { self.instanceName = instanceName }

    /// Returns the peer of a sighting.
    func peer(at key: SightingKey) -> PeerID? { self.peers[key] }
    mutating func sighted(_ peer: PeerID, at key: SightingKey) { self.peers[key] = peer }
    /// Removes a sighting. Returns its peer.
    @discardableResult
    mutating func lost(_ key: SightingKey) -> PeerID? { self.peers.removeValue(forKey: key) }

    /// Notes whether a peer is listed only because discovery sees it.
    mutating func list(_ peer: PeerID, isUnknown: Bool) {
        if isUnknown { self.unknown.insert(peer) } else { self.unknown.remove(peer) }
    }

    /// Whether another peer that is known from discovery alone is listed. Other peers are always listed.
    mutating func admit() -> Admission {
        let wasFull = self.isFull
        self.isFull = self.unknown.count >= EarshotLimits.discoveredPeers
        return self.isFull ? wasFull ? .full : .newlyFull : .admitted
    }
}
