package import EarshotWire

/// The places in which strangers wait for a decision of a user here: few in all, and few per address, since new keys cost nothing.
///
/// If all places are taken, a newcomer displaces the oldest stranger that has disconnected, else the oldest one at the address that holds
/// most places. If each address holds only one place, the newcomer is refused. A stranger with one address therefore keeps at most one
/// place from others.
/// Pure, and in the order in which the places were taken.
package struct StrangersPlaces: Sendable, Hashable {
    /// The result for a newcomer.
    package enum Admission: Sendable, Hashable {
        /// There was room.
        case admitted
        /// The newcomer displaced a peer. That peer had disconnected, or has to be told.
        case replaced(PeerID, hadGone: Bool)
        /// There is no room for the newcomer.
        case busy
    }

    private struct Place: Sendable, Hashable {
        let peer: PeerID
        /// The peer's address (an IPv4 address or an IPv6 /64) at its arrival.
        let origin: [UInt8]
        /// Whether the peer has no connection.
        var hasGone = false
    }

    /// The number of places in all.
    package let limit: Int
    /// The number of places at one IPv4 address or IPv6 /64.
    package let limitPerAddress: Int
    /// The places, the oldest first.
    private var places: [Place] = []

    package init(limit: Int, perAddress: Int) {
        self.limit = limit
        self.limitPerAddress = perAddress
    }

    /// The number of places taken.
    package var count: Int { self.places.count }

    /// Admits a connected peer if there is room. A peer has one place at most.
    package mutating func admit(_ peer: PeerID, from origin: [UInt8]) -> Admission {
        guard !self.contains(peer) else { return .busy }
        let held = self.places.count { $0.origin == origin }
        let given: Int?
        if held >= self.limitPerAddress {
            // A place of another address would not help.
            given = self.places.firstIndex { $0.origin == origin && $0.hasGone }
            guard given != nil else { return .busy }
        } else if self.places.count >= self.limit {
            given = self.places.firstIndex(where: \.hasGone) ?? self.oldestOfMost(preferring: origin)
            guard given != nil else { return .busy }
        } else {
            given = nil
        }
        let former = given.map { self.places.remove(at: $0) }
        self.places.append(Place(peer: peer, origin: origin))
        return former.map { .replaced($0.peer, hadGone: $0.hasGone) } ?? .admitted
    }

    /// Returns the oldest place at the address that holds most, if that is more than one place. If several addresses hold as many, the
    /// newcomer's own address is preferred, then the address with the oldest place.
    private func oldestOfMost(preferring origin: [UInt8]) -> Int? {
        let held: [[UInt8]: Int] = self.places.reduce(into: [:]) { $0[$1.origin, default: 0] += 1 }
        let most = held.values.max() ?? 0  // order does not show: the greatest is the same in any
        guard most > 1 else { return nil }
        if held[origin] == most { return self.places.firstIndex { $0.origin == origin } }
        return self.places.firstIndex { held[$0.origin] == most }
    }

    /// Whether the peer has a place.
    package func contains(_ peer: PeerID) -> Bool { self.places.contains { $0.peer == peer } }

    /// Removes the place of a peer that no longer waits, or is no longer a stranger.
    package mutating func release(_ peer: PeerID) { self.places.removeAll { $0.peer == peer } }

    /// Notes that the peer's connection ended.
    package mutating func left(_ peer: PeerID) { self.mark(peer, hasGone: true) }

    /// Notes that the peer is connected again. Its place still counts for the address at which the peer took it.
    package mutating func returned(_ peer: PeerID) { self.mark(peer, hasGone: false) }

    private mutating func mark(_ peer: PeerID, hasGone: Bool) {
        guard let index = self.places.firstIndex(where: { $0.peer == peer }) else { return }
        self.places[index].hasGone = hasGone
    }
}
