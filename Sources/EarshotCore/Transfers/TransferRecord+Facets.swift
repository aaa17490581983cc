import EarshotWire

/// Transfers are counted by these facets, because the core looks them up for each frame of a peer.
extension TransferRecord: PeerTableRow {
    struct Facets: OptionSet, Sendable, Hashable {
        let rawValue: UInt16
        /// Not over; it may be interrupted.
        static let open = Facets(rawValue: 1 << 0)
        static let openIncoming = Facets(rawValue: 1 << 1)
        static let openOutgoing = Facets(rawValue: 1 << 2)
        /// An offer that waits for a user here.
        static let waiting = Facets(rawValue: 1 << 3)
        /// Being received, or about to be.
        static let taking = Facets(rawValue: 1 << 4)
        /// Its mover has not stopped, whether it is over or not.
        static let incomingMover = Facets(rawValue: 1 << 5)
        static let outgoingMover = Facets(rawValue: 1 << 6)
        /// Its content is in the spool, or will be.
        static let kept = Facets(rawValue: 1 << 7)
        /// Over, and the peer is to be told when it is back.
        static let untold = Facets(rawValue: 1 << 8)
        /// Waits for a session with its peer at the user's request.
        static let queued = Facets(rawValue: 1 << 9)
        /// Over, without content, and at rest: it remains only for listing.
        static let finished = Facets(rawValue: 1 << 10)
        /// Outgoing; begins or resumes when its peer is connected and it has its turn.
        static let ready = Facets(rawValue: 1 << 11)
        /// Like ``ready``, but with a time limit.
        static let readyInTime = Facets(rawValue: 1 << 12)
        /// Incoming, offered again; waits until fewer are in progress.
        static let offeredAgain = Facets(rawValue: 1 << 13)
        /// Moves bytes: shares the limit on the bandwidth of its direction.
        static let activeIncoming = Facets(rawValue: 1 << 14)
        static let activeOutgoing = Facets(rawValue: 1 << 15)
    }

    static var finished: Facets { .finished }

    var peerID: PeerID { self.row.peerID }

    /// Whether its mover moves bytes. The last bytes of an incoming one may still wait for their rate while it settles.
    var isActive: Bool {
        guard self.isMoving, self.hasMover else { return false }
        return switch self.limit {
        case .movement: true
        case .reach, .answer, .decision, .comparison, .done, .absence, nil: self.reception.isSettling
        }
    }

    var facets: Facets {
        let isIncoming = self.row.direction == .incoming
        var facets: Facets = []
        if self.isOpen { facets.formUnion([.open, isIncoming ? .openIncoming : .openOutgoing]) }
        if self.isWaiting { facets.insert(.waiting) }
        if self.isTaken, self.isOpen, self.hasMover { facets.insert(.taking) }
        if self.hasMover { facets.insert(isIncoming ? .incomingMover : .outgoingMover) }
        if self.hasContent || (self.isTaken && self.isOpen) { facets.insert(.kept) }
        if self.isUntold { facets.insert(.untold) }
        if !isIncoming, self.isOpen, self.stored?.isQueued == true, self.row.group == nil { facets.insert(.queued) }
        if !self.isOpen, !self.hasContent, self.isAtRest { facets.insert(.finished) }
        if self.isActive { facets.insert(isIncoming ? .activeIncoming : .activeOutgoing) }
        if isIncoming, self.isOpen, self.isAtRest, self.pendingOffer != nil { facets.insert(.offeredAgain) }
        if !isIncoming, self.isOpen, !self.hasMover, self.link == nil, self.stored != nil {
            facets.formUnion(self.limit == nil ? .ready : [.ready, .readyInTime])
        }
        return facets
    }
}
