import EarshotWire
import OrderedCollections

/// A sighting's key together with the backend that reported it.
struct SightingKey: Sendable, Hashable {
    let backend: DiscoveryStatus.Backend
    let key: Sighting.Key
}

/// The places where discovery sees a peer, and the peer's last published state.
struct Presence: Sendable {
    private(set) var advertisedName: String?
    private(set) var sightings: OrderedDictionary<SightingKey, SeenAddresses> = [:]
    /// Sightings that later ones displaced. They come back when there is room, because discovery reports each sighting only once.
    private(set) var displaced: OrderedDictionary<SightingKey, SeenAddresses> = [:]
    /// Whether the peer is no longer seen, and still counts as nearby for a while.
    private(set) var isInGrace = false
    /// Whether `peer.found` was published. ``published`` is the peer's last published state.
    private(set) var isAnnounced = false
    private(set) var published: Peer?
    let firstSeen: WallTime
    private(set) var lastSeen: WallTime

    init(at now: WallTime) {
        self.firstSeen = now
        self.lastSeen = now
    }

    /// Creates the presence of a stored peer.
    init(_ stored: StoredPeer) {
        self.firstSeen = stored.firstSeen
        self.lastSeen = stored.lastSeen
        if !stored.isProven { self.advertisedName = stored.name }
        self.isAnnounced = true
    }

    /// The addresses at which discovery saw the peer, IPv4 before IPv6, with whether they came in on loopback. There are at most
    /// `EarshotLimits.addressesPerPeer`, shared fairly among the sightings.
    var sightedAddresses: [SightedAddress] {
        var seen: Set<PeerAddress> = []
        var all: [SightedAddress] = []
        let most = self.sightings.values.reduce(0) { max($0, $1.addresses.count) }
        for index in 0..<most {
            for place in self.sightings.values where index < place.addresses.count && all.count < EarshotLimits.addressesPerPeer {
                let address = place.addresses[index]
                guard seen.insert(address).inserted else { continue }
                all.append(SightedAddress(address: address, isLoopback: place.sighting.isLoopback))
            }
        }
        return all.filter { !$0.address.isIPv6 } + all.filter { $0.address.isIPv6 }
    }

    /// The pairs of the peer's latest advertisement.
    var discoveryInfo: [String: String] {
        guard let sighting = self.sightings.values.last?.sighting else { return [:] }
        return DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName)?.pairs ?? [:]
    }

    /// The keys of all sightings, displaced ones first.
    var keys: [SightingKey] { Array(self.displaced.keys) + Array(self.sightings.keys) }

    /// Adds or replaces a sighting. If there are too many sightings, the oldest is displaced. If there are too many displaced ones, the
    /// oldest is dropped and its key is returned.
    mutating func note(_ seen: SeenAddresses, _ key: SightingKey, name: String, at now: WallTime) -> SightingKey? {
        // A renamed peer is seen under both instances for a while, and the old one may be reported again. An unchanged TXT record does not
        // change the name.
        if self.sightings[key]?.sighting.txt != seen.sighting.txt { self.advertisedName = name }
        self.lastSeen = now
        self.isInGrace = false
        self.displaced.removeValue(forKey: key)
        self.sightings[key] = seen
        guard self.sightings.count > EarshotLimits.sightingsPerPeer else { return nil }
        let oldest = self.sightings.removeFirst()
        self.displaced[oldest.key] = oldest.value
        guard self.displaced.count > EarshotLimits.displacedSightings else { return nil }
        return self.displaced.removeFirst().key
    }

    /// Removes a sighting. Returns whether a displaced sighting came back: the peer may be reached there again.
    mutating func lose(_ key: SightingKey) -> Bool {
        guard self.displaced.removeValue(forKey: key) == nil else { return false }
        self.sightings.removeValue(forKey: key)
        let isBack = !self.displaced.isEmpty
        if isBack {
            let back = self.displaced.removeLast()
            self.sightings.updateValue(back.value, forKey: back.key, insertingAt: 0)
        }
        if let left = self.sightings.values.last?.sighting,
            let info = DiscoveryInfo.read(left.txt, instanceName: left.key.instanceName)
        {
            self.advertisedName = info.name
        }
        return isBack
    }

    mutating func heard(at now: WallTime) { self.lastSeen = now }
    mutating func beginGrace() { self.isInGrace = true }
    mutating func endGrace() { self.isInGrace = false }
    mutating func announce() { self.isAnnounced = true }

    /// Marks the peer as no longer listed, while its row stays.
    mutating func withdraw() {
        self.isAnnounced = false
        self.published = nil
    }

    mutating func publish(_ peer: Peer) {
        self.published = peer
        self.isAnnounced = true
    }
}

/// An address at which discovery saw a peer, with whether the record came in on the loopback interface.
package struct SightedAddress: Sendable, Hashable {
    package let address: PeerAddress
    package let isLoopback: Bool

    package init(address: PeerAddress, isLoopback: Bool) {
        self.address = address
        self.isLoopback = isLoopback
    }
}
