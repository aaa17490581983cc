import EarshotWire

/// A resource with what is decided about it while it moves, and while it waits to move on; its bytes are its mover's affair.
///
/// A mover of an upload works while its peer is attached, one of a download from the offer on. When the connection is lost the mover is told
/// to stop, and the next one begins once that one has.
struct TransferRecord: Sendable {
    /// What a transfer waits for, each for a limited time.
    enum Limit: Sendable, Hashable {
        /// That the peer of an outgoing one is within reach.
        case reach
        /// The peer's answer to this side's offer.
        case answer
        /// A person's answer here.
        case decision
        /// That both sides have read what the receiver holds from before.
        case comparison
        /// That more bytes move than these.
        case movement(beyond: UInt64)
        /// The peer's word that it has everything.
        case done
        /// That the peer is back.
        case absence
    }

    /// An offer that came again before the last mover had stopped.
    struct PendingOffer: Sendable {
        let offer: ResourceOffer
        let link: LinkID
    }

    /// What comes once its content in the spool is gone.
    enum Removal: Sendable {
        /// It is where it belongs, as that row says.
        case placed(Resource)
        case failed(TransferFailure)
        /// It had ended before.
        case undone
    }

    var row: Resource
    /// What it needs to go on after an interruption; `nil` once it is over and its peer need not be told.
    var stored: StoredTransfer?
    /// The connection on which both sides speak of it; `nil` where it waits for a person or its peer, and when it is over.
    var link: LinkID?
    /// The connection on which an incoming one was offered last: on another one its sender does not know yet what an answer is about.
    var offerLink: LinkID?
    /// Whether its mover has not stopped.
    var hasMover = false
    /// Of a file: as an incoming one was offered last, or as the caller says that brings an outgoing one. They need not be kept: each
    /// connection begins with an offer, and what the spool has of a file has them too.
    var attributes: FileAttributes?
    /// How far its mover is.
    var upload = UploadStateMachine()
    var download = DownloadStateMachine()
    var pendingOffer: PendingOffer?
    /// Whether the other side may know of an outgoing one.
    var isOffered = false
    /// Its source as it is offered, where that is another one than the receiver has taken.
    var opened: OpenedSource?
    /// What the receiver takes of that, until the disk has it.
    var accepted: ResourceAccept?
    /// What its deadline is for.
    var limit: Limit?
    /// The other side has ended it: it need not be told, now or when it is back.
    var isEndedByPeer = false
    /// All of an incoming one has arrived: it goes on to its end without the connection.
    var isSettling = false
    /// Its row as a received one is on its way to the disk, or is being taken back there, since it has ended meanwhile.
    var isBeingKept = false
    /// Whole and kept, on its way into the directory of received files, and too late to cancel: its row as it will be there.
    var placing: Resource?
    var removal: Removal?
    /// Its row on disk has no content any more, and the spool has not said yet that it has none either.
    var isContentLeft = false
    /// The removal of its row, which is on its way to the disk. A resource that is offered anew meanwhile has another record, and stays.
    var unwantedBy: CommitID?
    /// Who waits for that to begin.
    var remover: CallID?
    var meter = RateMeter()
    var pace = PaceMeter()
    var lastProgress: MonotonicInstant?
    /// When bytes of it last moved, or its mover began.
    private(set) var lastMoved: MonotonicInstant?
    /// When its mover began to move bytes, until that has been recorded.
    var unrecordedSince: MonotonicInstant?
    /// Who waits for its end, or, of an incoming one, for it to have begun.
    var caller: CallID?
    /// What its sender is charged while it waits here, or moves.
    var hold: HoldID?

    init(row: Resource, stored: StoredTransfer? = nil) {
        self.row = row
        self.stored = stored
    }

    /// What has the disk know it as it is.
    var operations: [StoreOperation] { [.putResource(self.row)] + (self.stored.map { [.putTransfer($0)] } ?? []) }

    /// It may be interrupted.
    var isOpen: Bool { !self.row.state.isFinal }

    /// In which the two speak of it.
    var conversation: Conversation { Conversation(with: self.row.peerID, in: self.row.group?.id) }

    /// Neither over nor interrupted.
    var isMoving: Bool { self.isOpen && self.link != nil }

    /// Whether an incoming one was accepted, by a person or by the policy.
    var isTaken: Bool { self.stored?.isTaken ?? false }

    /// Whether its end is to be told to the other side when that returns.
    var isUntold: Bool { !self.isOpen && self.stored != nil }

    /// Whether the spool has content of it that nothing works on.
    var hasContent: Bool { self.row.inSpool || self.isContentLeft }

    /// Whether the disk is busy with what has arrived. Where it is cancelled meanwhile, the disk has it until that is taken back.
    var isWithDisk: Bool { self.isBeingKept || (self.isSettling && self.hasMover && self.row.state != .completed) }

    /// Whether its row is about to go.
    var isBeingRemoved: Bool { self.unwantedBy != nil || self.remover != nil }

    /// Whether nothing works on it here. Before that its row does not go, and it does not begin anew under its id.
    var isAtRest: Bool { !self.hasMover && !self.isBeingKept }

    /// Whether it waits for a person here.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .offered && !self.isTaken }

    /// The row as it is at the moment, for a caller that asks: without events the rate would stay at what it was.
    func shown(at now: MonotonicInstant) -> Resource {
        guard self.isOpen else { return self.row }
        var row = self.row
        row.queued = row.direction == .outgoing && row.state == .offered && self.link == nil ? true : nil
        row.bytesPerSecond = self.link == nil ? 0 : self.meter.bytesPerSecond(at: now)
        return row
    }

    /// It begins or goes on, on that connection, with a new mover.
    mutating func begin(on link: LinkID, at now: MonotonicInstant) {
        self.link = link
        self.hasMover = true
        self.upload = UploadStateMachine()
        self.download = DownloadStateMachine()
        self.accepted = nil
        self.unrecordedSince = now
        self.lastMoved = now
    }

    /// The receiver takes so much of the source as it is now; gives what it is then.
    mutating func adopts(_ accept: ResourceAccept) -> Self {
        self.accepted = accept
        var adopted = self
        adopted.adopt()
        return adopted
    }

    /// Its source is what it is now, from the beginning.
    mutating func adopt() {
        self.accepted = nil
        guard let source = self.opened.take() else { return }
        self.stored?.stamp = source.stamp
        self.row.size = source.size
        self.row.transferred = 0
    }

    /// Bytes have moved; gives whether that is to be told, and whether it is to be kept.
    mutating func progress(to offset: UInt64, at now: MonotonicInstant) -> (isDue: Bool, isRecordDue: Bool) {
        let offset = min(offset, self.row.size)
        let moved = offset - min(self.row.transferred, offset)
        if moved > 0 { self.lastMoved = now }
        // From where an interrupted one goes on, nothing has moved yet.
        if self.lastProgress != nil {
            self.meter.add(moved, at: now)
            self.pace.add(moved, at: now)
        }
        let left = self.row.size - min(offset, self.row.size)
        self.row.transferred = offset
        self.row.bytesPerSecond = self.meter.bytesPerSecond
        self.row.secondsLeft = self.pace.secondsLeft(for: left)
        self.row.state = .transferring
        let isDue = self.lastProgress.map { now - $0 >= EarshotLimits.progressInterval } ?? true
        if isDue { self.lastProgress = now }
        // Recorded as moving, so that the next start knows it for interrupted if the process is killed. A small transfer is over before
        // that is worth a write.
        let isLarge = left >= EarshotLimits.dataThreshold
        let isRecordDue = self.unrecordedSince.map { isLarge || now - $0 >= EarshotLimits.resourceRecordTime } ?? false
        if isRecordDue { self.unrecordedSince = nil }
        return (isDue, isRecordDue)
    }

    /// The connection is gone, and it goes on with the next.
    mutating func interrupt(until latest: WallTime) {
        self.link = nil
        self.meter = RateMeter()
        self.pace.pause()
        self.lastProgress = nil
        self.unrecordedSince = nil
        self.row.bytesPerSecond = 0
        if self.row.state == .transferring || self.isTaken { self.row.state = .paused }
        self.isAbsent(until: latest)
    }

    /// Its peer is away from now on; a queued one may have longer.
    mutating func isAbsent(until latest: WallTime) {
        guard let stored = self.stored else { return }
        self.stored?.expiry = stored.isQueued ? max(stored.expiry, latest) : latest
    }

    /// It is over; its row says how.
    mutating func end(_ state: Resource.State, _ error: EarshotError?, at now: WallTime, isUntold: Bool) {
        self.row.state = state
        if state == .completed { self.row.transferred = self.row.size }
        self.row.error = error?.code
        self.row.errorMessage = error?.message
        self.row.bytesPerSecond = 0
        self.row.secondsLeft = nil
        self.row.completed = now
        self.link = nil
        self.limit = nil
        self.pendingOffer = nil
        self.caller = nil
        if !isUntold { self.stored = nil }
    }

    /// What its sender says of it.
    func offer(in session: SessionID) -> ResourceOffer {
        let kind: ResourceOffer.Kind =
            switch self.row.kind {
            case .file: .file
            case .directory: .directory
            }
        return ResourceOffer(session: session, id: self.row.id, kind: kind, size: self.row.size, name: self.row.name)
    }
}

/// What is asked of transfers for each frame of a peer, and so is counted.
extension TransferRecord: PeerTableRow {
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
        /// Its mover has not stopped, whether it is over or not.
        static let incomingMover = Facets(rawValue: 1 << 5)
        static let outgoingMover = Facets(rawValue: 1 << 6)
        /// Its content lies in the spool, or will.
        static let kept = Facets(rawValue: 1 << 7)
        /// Over, and the other side is to be told when it is back.
        static let untold = Facets(rawValue: 1 << 8)
        /// Waits for a session with its peer by a person's wish.
        static let queued = Facets(rawValue: 1 << 9)
        /// Over, without content, and at rest: it stays only to be listed.
        static let finished = Facets(rawValue: 1 << 10)
        /// Outgoing, and begins or goes on when its peer is there and it is its turn.
        static let ready = Facets(rawValue: 1 << 11)
        /// The same, but only for so long.
        static let readyInTime = Facets(rawValue: 1 << 12)
        /// Incoming, was offered again, and waits until fewer are on their way.
        static let offeredAgain = Facets(rawValue: 1 << 13)
    }

    static var finished: Facets { .finished }

    var peerID: PeerID { self.row.peerID }

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
        if isIncoming, self.isOpen, self.isAtRest, self.pendingOffer != nil { facets.insert(.offeredAgain) }
        if !isIncoming, self.isOpen, !self.hasMover, self.link == nil, self.stored != nil {
            facets.formUnion(self.limit == nil ? .ready : [.ready, .readyInTime])
        }
        return facets
    }
}
