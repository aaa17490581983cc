package import EarshotWire

/// The places in which strangers wait for a person here to decide: few in all, and few an address, since fresh keys cost nothing.
///
/// Where all are taken, a newcomer has the place of the oldest stranger that has gone, else of the oldest at whichever address holds most.
/// Where each address holds one, the newcomer is turned away: so a stranger with one address keeps one place from the others, and no more.
/// Pure, and in the order in which the places were taken.
package struct StrangersPlaces: Sendable, Hashable {
    /// What becomes of a newcomer.
    package enum Admission: Sendable, Hashable {
        /// There was room.
        case admitted
        /// It has the place of another one, which had gone, or is to be told.
        case replaced(PeerID, hadGone: Bool)
        /// There is no room for it.
        case busy
    }

    private struct Place: Sendable, Hashable {
        let peer: PeerID
        /// Its address (an IPv4 address or an IPv6 /64) when it came.
        let origin: [UInt8]
        /// Whether it has no connection.
        var hasGone = false
    }

    /// Places in all.
    package let limit: Int
    /// Of them, at one IPv4 address or IPv6 /64.
    package let limitPerAddress: Int
    /// The oldest first.
    private var places: [Place] = []

    package init(limit: Int, perAddress: Int) {
        self.limit = limit
        self.limitPerAddress = perAddress
    }

    /// How many are taken.
    package var count: Int { self.places.count }

    /// Gives a peer that is connected a place, where there is one for it; a peer has one at most.
    package mutating func admit(_ peer: PeerID, from origin: [UInt8]) -> Admission {
        guard !self.contains(peer) else { return .busy }
        let held = self.places.count { $0.origin == origin }
        let given: Int?
        if held >= self.limitPerAddress {
            // No other address's place would help.
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

    /// The oldest place at the address that holds most, where that is more than one; of several such the newcomer's own, else the one whose
    /// oldest is the oldest.
    private func oldestOfMost(preferring origin: [UInt8]) -> Int? {
        let held: [[UInt8]: Int] = self.places.reduce(into: [:]) { $0[$1.origin, default: 0] += 1 }
        let most = held.values.max() ?? 0  // order does not show: the greatest is the same in any
        guard most > 1 else { return nil }
        if held[origin] == most { return self.places.firstIndex { $0.origin == origin } }
        return self.places.firstIndex { held[$0.origin] == most }
    }

    /// Whether the peer has a place.
    package func contains(_ peer: PeerID) -> Bool { self.places.contains { $0.peer == peer } }

    /// It waits no longer, or is no stranger any more.
    package mutating func release(_ peer: PeerID) { self.places.removeAll { $0.peer == peer } }

    /// Its connection ended.
    package mutating func left(_ peer: PeerID) { self.mark(peer, hasGone: true) }

    /// It is connected again; its place counts for the address at which it took it.
    package mutating func returned(_ peer: PeerID) { self.mark(peer, hasGone: false) }

    private mutating func mark(_ peer: PeerID, hasGone: Bool) {
        guard let index = self.places.firstIndex(where: { $0.peer == peer }) else { return }
        self.places[index].hasGone = hasGone
    }
}
