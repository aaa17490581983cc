import OrderedCollections

/// Where other machines advertise this node's own peer id.
///
/// An honest peer does so if its disk is a copy of this machine's: the two then receive each other's messages. An advertisement proves
/// nothing, so the administrator is told and nothing else follows from it.
struct IdentityCopies: Sendable {
    private var sightings: OrderedDictionary<SightingKey, [PeerAddress]> = [:]

    /// The advertised addresses, in the order in which they were seen.
    var addresses: [PeerAddress] { Array(OrderedSet(self.sightings.values.joined())) }

    /// Notes a sighting of this node's id at another machine; whether it is the first one.
    mutating func note(_ seen: SeenAddresses, _ key: SightingKey) -> Bool {
        let isFirst = self.sightings.isEmpty
        guard self.sightings[key] != nil || self.sightings.count < EarshotLimits.identityCopies else { return false }
        self.sightings[key] = Array(seen.addresses.prefix(EarshotLimits.addressesPerHost))
        return isFirst
    }

    /// A sighting is gone, or turned out to be of something else.
    mutating func lose(_ key: SightingKey) { self.sightings[key] = nil }

    /// A backend has forgotten everything.
    mutating func lose(_ backend: DiscoveryStatus.Backend) { self.sightings.removeAll { $0.key.backend == backend } }
}
