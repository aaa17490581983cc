import EarshotWire

/// A resource with the decisions about it while it moves or waits. Its mover handles the bytes.
///
/// The mover of an upload works while its peer is attached, the mover of a download from the offer on. When the connection is lost the
/// mover is told to stop. The next mover begins once the last has stopped.
struct TransferRecord: Sendable {
    /// The reason for a time limit: the next step that the transfer waits for.
    enum Limit: Sendable, Hashable {
        /// An outgoing transfer waits for its peer to be reachable.
        case reach
        /// The peer's answer to this side's offer.
        case answer
        /// The user's answer here.
        case decision
        /// Both sides read the content that the receiver holds from before.
        case comparison
        /// Progress beyond the given number of bytes.
        case movement(beyond: UInt64)
        /// The peer's confirmation that it has everything.
        case done
        /// The return of the peer.
        case absence
    }

    /// An offer that was repeated before the last mover had stopped.
    struct PendingOffer: Sendable {
        let offer: ResourceOffer
        let link: LinkID
    }

    /// The step that follows the removal of content from the spool.
    enum Removal: Sendable {
        /// The content is in its place, as this row says.
        case placed(Resource)
        case failed(TransferFailure)
        /// The transfer had ended before.
        case undone
    }

    var row: Resource
    /// The data for resuming after an interruption; `nil` once the transfer is over and its peer need not be told.
    var stored: StoredTransfer?
    /// The connection on which both sides speak of the transfer; `nil` if it waits for a user or its peer, and when it is over.
    var link: LinkID?
    /// The connection on which an incoming transfer was offered last. On another connection its sender does not know yet what an answer
    /// refers to.
    var offerLink: LinkID?
    /// Whether its mover has not stopped yet.
    var hasMover = false
    /// The attributes of a file: as last offered for an incoming one, or as given by the caller for an outgoing body. They are not stored:
    /// each connection begins with an offer, and the spool keeps those of the files that it holds.
    var attributes: FileAttributes?
    /// The progress of its mover.
    var upload = UploadStateMachine()
    var download = DownloadStateMachine()
    var pendingOffer: PendingOffer?
    /// Whether the peer may know of an outgoing transfer.
    var isOffered = false
    /// The offered source, if it differs from the one that the receiver accepted before.
    var opened: OpenedSource?
    /// The receiver's acceptance of the changed source, until that is on disk.
    var accepted: ResourceAccept?
    /// The limit that its deadline applies to.
    var limit: Limit?
    /// Whether the peer has ended it, and need not be told.
    var isEndedByPeer = false
    /// Whether all of an incoming transfer has arrived: it finishes without the connection.
    var isSettling = false
    /// Whether its row as a received one is being written, or is being undone because the transfer has ended meanwhile.
    var isBeingKept = false
    /// The row that it will have in the directory of received files, while it is being moved there. It can no longer be cancelled.
    var placing: Resource?
    var removal: Removal?
    /// Whether its row on disk says that there is no content, while the spool has not confirmed the removal yet.
    var isContentLeft = false
    /// The commit that removes its row. A resource that is offered again meanwhile has another record, and stays.
    var unwantedBy: CommitID?
    /// The call that waits for the removal to begin.
    var remover: CallID?
    var meter = RateMeter()
    var pace = PaceMeter()
    var lastProgress: MonotonicInstant?
    /// When its bytes last moved, or its mover began.
    private(set) var lastMoved: MonotonicInstant?
    /// When its mover began to move bytes, until that has been recorded.
    var unrecordedSince: MonotonicInstant?
    /// The call that waits for its end, or, for an incoming transfer, for its beginning.
    var caller: CallID?
    /// The charge of its sender while it waits here or moves.
    var hold: HoldID?

    init(row: Resource, stored: StoredTransfer? = nil) {
        self.row = row
        self.stored = stored
    }

    /// The store operations that write its present state.
    var operations: [StoreOperation] { [.putResource(self.row)] + (self.stored.map { [.putTransfer($0)] } ?? []) }

    /// Whether it is not over; it may be interrupted.
    var isOpen: Bool { !self.row.state.isFinal }

    /// The conversation that it belongs to.
    var conversation: Conversation { Conversation(with: self.row.peerID, in: self.row.group?.id) }

    /// Whether it is neither over nor interrupted.
    var isMoving: Bool { self.isOpen && self.link != nil }

    /// Whether an incoming transfer was accepted, by a user or by the policy.
    var isTaken: Bool { self.stored?.isTaken ?? false }

    /// Whether the peer is to be told of its end when it returns.
    var isUntold: Bool { !self.isOpen && self.stored != nil }

    /// Whether the spool has content of it that nothing works on.
    var hasContent: Bool { self.row.inSpool || self.isContentLeft }

    /// Whether the disk is busy with its content. If it is cancelled meanwhile, the disk still has it until that is undone.
    var isWithDisk: Bool { self.isBeingKept || (self.isSettling && self.hasMover && self.row.state != .completed) }

    /// Whether its row is being removed.
    var isBeingRemoved: Bool { self.unwantedBy != nil || self.remover != nil }

    /// Whether nothing works on it here. Until then its row is not removed, and it does not start again under its id.
    var isAtRest: Bool { !self.hasMover && !self.isBeingKept }

    /// Whether it waits for a user's answer here.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .offered && !self.isTaken }

    /// Returns the row as of `now`, for a caller that asks. Between events, the stored rate would be stale.
    func shown(at now: MonotonicInstant) -> Resource {
        guard self.isOpen else { return self.row }
        var row = self.row
        row.queued = row.direction == .outgoing && row.state == .offered && self.link == nil ? true : nil
        row.bytesPerSecond = self.link == nil ? 0 : self.meter.bytesPerSecond(at: now)
        return row
    }

    /// Begins or resumes it on a connection, with a new mover.
    mutating func begin(on link: LinkID, at now: MonotonicInstant) {
        self.link = link
        self.hasMover = true
        self.upload = UploadStateMachine()
        self.download = DownloadStateMachine()
        self.accepted = nil
        self.unrecordedSince = now
        self.lastMoved = now
    }

    /// Notes which part of the changed source the receiver accepts. Returns the record as it will be then.
    mutating func adopts(_ accept: ResourceAccept) -> Self {
        self.accepted = accept
        var adopted = self
        adopted.adopt()
        return adopted
    }

    /// Replaces the source with the changed one, from the beginning.
    mutating func adopt() {
        self.accepted = nil
        guard let source = self.opened.take() else { return }
        self.stored?.stamp = source.stamp
        self.row.size = source.size
        self.row.transferred = 0
    }

    /// Records that bytes have moved. Returns whether that is to be published, and whether it is to be stored.
    mutating func progress(to offset: UInt64, at now: MonotonicInstant) -> (isDue: Bool, isRecordDue: Bool) {
        let offset = min(offset, self.row.size)
        let moved = offset - min(self.row.transferred, offset)
        if moved > 0 { self.lastMoved = now }
        // At the offset from which an interrupted transfer resumes, nothing has moved yet.
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
        // Stored as moving, so that the next start takes it as interrupted if the process is killed. A small transfer is over before that
        // is worth a write.
        let isLarge = left >= EarshotLimits.dataThreshold
        let isRecordDue = self.unrecordedSince.map { isLarge || now - $0 >= EarshotLimits.resourceRecordTime } ?? false
        if isRecordDue { self.unrecordedSince = nil }
        return (isDue, isRecordDue)
    }

    /// Marks the transfer as interrupted: the connection is lost, and it resumes on the next one.
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

    /// Sets the expiry from the beginning of the peer's absence. A queued transfer may have longer.
    mutating func isAbsent(until latest: WallTime) {
        guard let stored = self.stored else { return }
        self.stored?.expiry = stored.isQueued ? max(stored.expiry, latest) : latest
    }

    /// Ends the transfer; its row says how.
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

    /// Returns its sender's offer of it.
    func offer(in session: SessionID) -> ResourceOffer {
        let kind: ResourceOffer.Kind =
            switch self.row.kind {
            case .file: .file
            case .directory: .directory
            }
        return ResourceOffer(session: session, id: self.row.id, kind: kind, size: self.row.size, name: self.row.name)
    }
}

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
