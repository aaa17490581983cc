import DequeModule
package import EarshotWire

/// The properties by which a ``PeerTable`` counts and finds its rows.
package protocol PeerTableRow: Sendable {
    associatedtype Facets: OptionSet, Sendable where Facets.RawValue == UInt16
    /// The peer to which the row belongs.
    var peerID: PeerID { get }
    /// The row's present facets.
    var facets: Facets { get }
    /// The facet of a finished row, which stays only to be listed.
    static var finished: Facets { get }
}

extension OptionSet where RawValue == UInt16 {
    /// The bits of the set's members.
    fileprivate var bits: [UInt16] {
        var (bits, rest): ([UInt16], UInt16) = ([], self.rawValue)
        while rest != 0 {
            let bit = rest & (~rest &+ 1)
            bits.append(bit)
            rest ^= bit
        }
        return bits
    }
}

/// A table of rows that belong to peers: transfers, or streams. The table counts and finds a peer's rows of one kind without looking at
/// other rows. A frame therefore costs the same for any number of rows, and a peer that makes many rows slows down only itself.
///
/// A limited number of finished rows stays to be listed. If a peer holds more than an equal share of these, its oldest rows are dropped
/// first.
package struct PeerTable<ID: Hashable & Sendable, Row: PeerTableRow>: Sendable {
    private struct Slot {
        var row: Row
        /// The row's position in the list.
        let place: UInt64
        /// The facets under which the row is counted.
        var facets: Row.Facets
        /// The number that tells the row's present end from an earlier one.
        var end: UInt64 = 0
    }

    /// Finished rows, in the order in which they ended. Some entries are outdated: their row is gone, or no longer finished.
    private struct Ends {
        private var entries: Deque<(id: ID, end: UInt64)> = []
        var count: Int { self.entries.count }

        mutating func append(_ id: ID, _ end: UInt64) { self.entries.append((id, end)) }

        /// Returns the oldest current entry, and drops outdated ones before it.
        mutating func first(where isCurrent: (ID, UInt64) -> Bool) -> ID? {
            while let oldest = self.entries.first {
                if isCurrent(oldest.id, oldest.end) { return oldest.id }
                self.entries.removeFirst()
            }
            return nil
        }

        mutating func compact(keeping isCurrent: (ID, UInt64) -> Bool) {
            self.entries.removeAll { !isCurrent($0.id, $0.end) }
        }
    }

    /// The rows of one peer.
    private struct Group {
        var members: [UInt16: Set<ID>] = [:]
        var ends = Ends()
    }

    private var slots: [ID: Slot] = [:]
    private var groups: [PeerID: Group] = [:]
    private var totals: [UInt16: Int] = [:]
    private var ends = Ends()
    /// The number of peers with finished rows.
    private var finishedPeers = 0
    private var counter: UInt64 = 0

    package init() {}

    /// Every row, the oldest first. The cost is proportional to the number of rows: for listing.
    package var values: [Row] {
        self.slots.values.sorted { $0.place < $1.place }.map(\.row)  // order does not show: no two have the same place
    }

    /// Returns the rows of one kind of all peers, the oldest first. The cost is proportional to their number.
    package func ids(_ facet: Row.Facets) -> [ID] {
        var ids: [ID] = []
        for group in self.groups.values {  // order does not show: sorted below
            ids += group.members[facet.rawValue] ?? []  // order does not show: sorted below
        }
        return self.sorted(ids)
    }

    /// Returns the rows of one kind of one peer, the oldest first.
    package func ids(of peer: PeerID, _ facet: Row.Facets) -> [ID] {
        guard let members = self.groups[peer]?.members[facet.rawValue] else { return [] }
        return self.sorted(Array(members))  // order does not show: sorted at once
    }

    package func count(_ facet: Row.Facets) -> Int { self.totals[facet.rawValue] ?? 0 }

    package func count(of peer: PeerID, _ facet: Row.Facets) -> Int { self.groups[peer]?.members[facet.rawValue]?.count ?? 0 }

    private func sorted(_ ids: [ID]) -> [ID] {
        // Each row is looked up once. Sorting a thousand ids with two lookups per comparison would block the node for milliseconds.
        let placed = ids.map { (id: $0, place: self.slots[$0]?.place ?? 0) }
        return placed.sorted { $0.place < $1.place }.map(\.id)
    }

    /// Accesses a row. A replaced row keeps its position in the list.
    package subscript(id: ID) -> Row? {
        get { self.slots[id]?.row }
        set {
            let old = self.slots[id]
            guard let row = newValue else {
                if let old { self.leave(id, old.row.peerID, old.facets) }
                self.slots[id] = nil
                return
            }
            let facets = row.facets
            guard let old else {
                self.counter += 1
                self.slots[id] = Slot(row: row, place: self.counter, facets: facets)
                return self.join(id, row.peerID, facets)
            }
            self.slots[id]?.row = row
            guard facets != old.facets || row.peerID != old.row.peerID else { return }
            self.slots[id]?.facets = facets
            if row.peerID == old.row.peerID {
                self.leave(id, row.peerID, old.facets.subtracting(facets))
                self.join(id, row.peerID, facets.subtracting(old.facets))
            } else {
                self.leave(id, old.row.peerID, old.facets)
                self.join(id, row.peerID, facets)
            }
        }
    }

    // MARK: Counting

    private mutating func join(_ id: ID, _ peer: PeerID, _ facets: Row.Facets) {
        for bit in facets.bits {
            let isFirst = self.groups[peer]?.members[bit] == nil
            self.groups[peer, default: Group()].members[bit, default: []].insert(id)
            self.totals[bit, default: 0] += 1
            guard bit == Row.finished.rawValue else { continue }
            if isFirst { self.finishedPeers += 1 }
            self.counter += 1
            self.slots[id]?.end = self.counter
            self.groups[peer]?.ends.append(id, self.counter)
            self.ends.append(id, self.counter)
        }
    }

    private mutating func leave(_ id: ID, _ peer: PeerID, _ facets: Row.Facets) {
        for bit in facets.bits {
            guard self.groups[peer]?.members[bit]?.remove(id) != nil else { continue }
            self.totals[bit, default: 0] -= 1
            guard self.groups[peer]?.members[bit]?.isEmpty == true else { continue }
            self.groups[peer]?.members[bit] = nil
            if bit == Row.finished.rawValue { self.finishedPeers -= 1 }
        }
        if self.groups[peer]?.members.isEmpty == true { self.groups[peer] = nil }
    }

    // MARK: Finished rows

    /// Returns the row to drop if there are more than `limit` finished rows. If `peer`, whose row has just ended, holds more than an equal
    /// share of them, this is the peer's oldest finished row; otherwise the oldest of all. Returns `nil` if there are not too many.
    package mutating func surplus(beyond limit: Int, endedBy peer: PeerID) -> ID? {
        self.compact()
        let finished = self.count(Row.finished)
        guard finished > limit else { return nil }
        let slots = self.slots
        let isCurrent = { (id: ID, end: UInt64) in slots[id].map { $0.end == end && $0.facets.isSuperset(of: Row.finished) } ?? false }
        if self.count(of: peer, Row.finished) > limit / max(1, self.finishedPeers),
            let own = self.groups[peer]?.ends.first(where: isCurrent)
        {
            return own
        }
        return self.ends.first(where: isCurrent)
    }

    /// Drops outdated entries, so that they do not accumulate.
    private mutating func compact() {
        let slots = self.slots
        let isCurrent = { (id: ID, end: UInt64) in slots[id].map { $0.end == end && $0.facets.isSuperset(of: Row.finished) } ?? false }
        let finished = self.count(Row.finished)
        guard self.ends.count > 2 * finished + 64 else { return }
        self.ends.compact(keeping: isCurrent)
        for peer in self.groups.keys {  // order does not show: each peer's is its own affair
            self.groups[peer]?.ends.compact(keeping: isCurrent)
        }
    }
}
