import EarshotWire
import OrderedCollections

/// A sighting's key together with the backend that made it.
struct SightingKey: Sendable, Hashable {
    let backend: DiscoveryStatus.Backend
    let key: Sighting.Key
}

/// Where a peer is seen, and what readers of events have last heard of it.
struct Presence: Sendable {
    private(set) var advertisedName: String?
    private(set) var sightings: OrderedDictionary<SightingKey, SeenAddresses> = [:]
    /// Those that had to give way to later ones, and come back once there is room: discovery says of none twice that it is there.
    private(set) var displaced: OrderedDictionary<SightingKey, SeenAddresses> = [:]
    /// It is not seen any more, which is forgiven for a while.
    private(set) var isInGrace = false
    /// Whether `peer.found` was published, and how the peer looked when it was last published.
    private(set) var isAnnounced = false
    private(set) var published: Peer?
    let firstSeen: WallTime
    private(set) var lastSeen: WallTime

    init(at now: WallTime) {
        self.firstSeen = now
        self.lastSeen = now
    }

    /// As it was kept.
    init(_ stored: StoredPeer) {
        self.firstSeen = stored.firstSeen
        self.lastSeen = stored.lastSeen
        if !stored.isProven { self.advertisedName = stored.name }
        self.isAnnounced = true
    }

    /// The addresses at which discovery saw it, IPv4 before IPv6, with whether it came in on loopback; at most
    /// `EarshotLimits.addressesPerPeer`, of which every sighting has its share.
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

    /// What its latest advertisement says.
    var discoveryInfo: [String: String] {
        guard let sighting = self.sightings.values.last?.sighting else { return [:] }
        return DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName)?.pairs ?? [:]
    }

    /// The keys of all sightings, those that had to give way too, and first.
    var keys: [SightingKey] { Array(self.displaced.keys) + Array(self.sightings.keys) }

    /// It was seen; of too many sightings the oldest gives way, and of too many of these the oldest goes, whose key is given.
    mutating func note(_ seen: SeenAddresses, _ key: SightingKey, name: String, at now: WallTime) -> SightingKey? {
        // One that was renamed is seen under both instances for a while, and the old one may still be reported anew: it says nothing new.
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

    /// It is not seen there any more. Gives whether it is where it had to give way instead: it may be reached there again.
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

    /// It is not listed any more, though its row stays.
    mutating func withdraw() {
        self.isAnnounced = false
        self.published = nil
    }

    mutating func publish(_ peer: Peer) {
        self.published = peer
        self.isAnnounced = true
    }
}

/// Where discovery saw a peer, and whether the record came in on the loopback interface.
package struct SightedAddress: Sendable, Hashable {
    package let address: PeerAddress
    package let isLoopback: Bool

    package init(address: PeerAddress, isLoopback: Bool) {
        self.address = address
        self.isLoopback = isLoopback
    }
}
