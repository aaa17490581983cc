import OrderedCollections

/// The addresses at which other machines advertise this node's own peer id.
///
/// An honest peer does this only if its disk is a copy of this machine's disk: the two then receive each other's messages. An advertisement
/// proves nothing. The node therefore only warns the administrator.
struct IdentityCopies: Sendable {
    private var sightings: OrderedDictionary<SightingKey, [PeerAddress]> = [:]

    /// The advertised addresses, in the order in which they were seen.
    var addresses: [PeerAddress] { Array(OrderedSet(self.sightings.values.joined())) }

    /// Records a sighting of this node's id at another machine. Returns whether it is the first one.
    mutating func note(_ seen: SeenAddresses, _ key: SightingKey) -> Bool {
        let isFirst = self.sightings.isEmpty
        guard self.sightings[key] != nil || self.sightings.count < EarshotLimits.identityCopies else { return false }
        self.sightings[key] = Array(seen.addresses.prefix(EarshotLimits.addressesPerHost))
        return isFirst
    }

    /// Removes a sighting that is gone, or that advertises another id now.
    mutating func lose(_ key: SightingKey) { self.sightings[key] = nil }

    /// Removes all sightings of a backend that lost its state.
    mutating func lose(_ backend: DiscoveryStatus.Backend) { self.sightings.removeAll { $0.key.backend == backend } }
}
