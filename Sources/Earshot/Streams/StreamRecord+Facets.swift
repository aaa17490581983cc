import EarshotWire

/// What is asked of streams for each frame of a peer, and so is counted.
extension StreamRecord: PeerTableRow {
    struct Facets: OptionSet, Sendable, Hashable {
        let rawValue: UInt16
        /// Not closed.
        static let open = Facets(rawValue: 1 << 0)
        static let openIncoming = Facets(rawValue: 1 << 1)
        static let openOutgoing = Facets(rawValue: 1 << 2)
        /// Waits to be accepted on this side.
        static let waiting = Facets(rawValue: 1 << 3)
        /// A data connection is worth it; others come first.
        static let wantsData = Facets(rawValue: 1 << 4)
        /// Both sides open one.
        static let opensData = Facets(rawValue: 1 << 5)
        /// Closed: it stays only to be listed.
        static let finished = Facets(rawValue: 1 << 6)
    }

    static var finished: Facets { .finished }

    var peerID: PeerID { self.row.peerID }

    var facets: Facets {
        var facets: Facets = []
        switch self.row.state {
        case .opening, .open: facets.formUnion([.open, self.row.direction == .incoming ? .openIncoming : .openOutgoing])
        case .closed: facets.insert(.finished)
        }
        if self.isWaiting { facets.insert(.waiting) }
        switch self.outlet {
        case .wanted: facets.insert(.wantsData)
        case .opening: facets.insert(.opensData)
        case .control, .settled: break
        }
        return facets
    }

    /// Whether this side has opened it, and the other side has not accepted it yet.
    var isOpeningHere: Bool { self.row.direction == .outgoing && self.row.state == .opening }
}
