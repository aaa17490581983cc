import EarshotWire

/// What is asked of transfers for each frame of a peer, and so is counted.
extension Transfer: PeerTableRow {
    struct Facets: OptionSet, Sendable, Hashable {
        let rawValue: UInt16
        /// Not over; it may be interrupted.
        static let open = Facets(rawValue: 1 << 0)
        static let openIncoming = Facets(rawValue: 1 << 1)
        static let openOutgoing = Facets(rawValue: 1 << 2)
        /// An offer that waits for a person here.
        static let waiting = Facets(rawValue: 1 << 3)
        /// Received, or about to be.
        static let taking = Facets(rawValue: 1 << 4)
        /// Its job has not returned, whether it is over or not.
        static let incomingJob = Facets(rawValue: 1 << 5)
        static let outgoingJob = Facets(rawValue: 1 << 6)
        /// Its content lies in the spool, or will.
        static let kept = Facets(rawValue: 1 << 7)
        /// Over, and the other side is to be told when it is back.
        static let untold = Facets(rawValue: 1 << 8)
        /// Waits for its peer by a person's wish.
        static let queued = Facets(rawValue: 1 << 9)
        /// Over, without content, and without a job that cleans up behind it: it stays only to be listed.
        static let finished = Facets(rawValue: 1 << 10)
    }

    static var finished: Facets { .finished }

    var peerID: PeerID { self.row.peerID }

    var facets: Facets {
        let isFinal = self.row.state.isFinal
        let isIncoming = self.row.direction == .incoming
        var facets: Facets = []
        if !isFinal { facets.formUnion([.open, isIncoming ? .openIncoming : .openOutgoing]) }
        if isIncoming, self.row.state == .offered, !self.isTaken { facets.insert(.waiting) }
        if self.isTaken, !isFinal, self.hasJob { facets.insert(.taking) }
        if self.hasJob { facets.insert(isIncoming ? .incomingJob : .outgoingJob) }
        if self.row.inSpool || (self.isTaken && !isFinal) { facets.insert(.kept) }
        if self.isUntold { facets.insert(.untold) }
        if !isIncoming, !isFinal, self.stored?.isQueued == true { facets.insert(.queued) }
        if isFinal, !self.row.inSpool, !self.hasJob { facets.insert(.finished) }
        return facets
    }
}
