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

    private(set) var row: Resource
    /// The data for resuming after an interruption; `nil` once the transfer is over and its peer need not be told.
    private(set) var stored: StoredTransfer?
    /// The connection on which both sides speak of the transfer; `nil` if it waits for a user or its peer, and when it is over.
    private(set) var link: LinkID?
    /// The connection on which an incoming transfer was offered last. On another connection its sender does not know yet what an answer
    /// refers to.
    private(set) var offerLink: LinkID?
    /// Whether its mover has not stopped yet.
    private(set) var hasMover = false
    /// The attributes of a file: as last offered for an incoming one, or as given by the caller for an outgoing body. They are not stored:
    /// each connection begins with an offer, and the spool keeps those of the files that it holds.
    private(set) var attributes: FileAttributes?
    /// The progress of its mover.
    private(set) var upload = UploadStateMachine()
    private(set) var download = DownloadStateMachine()
    /// The publication of an incoming one, after its last byte.
    private(set) var reception = ReceptionStateMachine()
    private(set) var pendingOffer: PendingOffer?
    /// Whether the peer may know of an outgoing transfer.
    private(set) var isOffered = false
    /// The offered source, if it differs from the one that the receiver accepted before.
    private(set) var opened: OpenedSource?
    /// The receiver's acceptance of the changed source, until that is on disk.
    private(set) var accepted: ResourceAccept?
    /// The limit that its deadline applies to.
    private(set) var limit: Limit?
    /// The rate of its mover, in bytes per second; `nil` for no limit.
    private(set) var rate: UInt64?
    /// Whether the peer has ended it, and need not be told.
    private(set) var isEndedByPeer = false
    /// The commit that removes its row. A resource that is offered again meanwhile has another record, and stays.
    private(set) var unwantedBy: CommitID?
    /// The call that waits for the removal to begin.
    private(set) var remover: CallID?
    private var meter = RateMeter()
    private var pace = PaceMeter()
    private var lastProgress: MonotonicInstant?
    /// When its bytes last moved, or its mover began.
    private(set) var lastMoved: MonotonicInstant?
    /// When its mover began to move bytes, until that has been recorded.
    private var unrecordedSince: MonotonicInstant?
    /// The call that waits for its end, or, for an incoming transfer, for its beginning.
    private(set) var caller: CallID?
    /// The charge of its sender while it waits here or moves.
    private(set) var hold: HoldID?
    /// The SHA-256 that a LocalSend device has given for its file.
    private(set) var offeredDigest: [UInt8]?
    /// The PIN that a LocalSend device asks for.
    let pin: String?

    init(
        row: Resource, stored: StoredTransfer? = nil, attributes: FileAttributes? = nil, caller: CallID? = nil, pin: String? = nil
    ) {
        self.row = row
        self.stored = stored
        self.attributes = attributes
        self.caller = caller
        self.pin = pin
    }

    /// Creates the record of an offered transfer.
    init(row: Resource, stored: StoredTransfer, attributes: FileAttributes?, offeredOn link: LinkID, charged hold: HoldID?) {
        self.init(row: row, stored: stored, attributes: attributes)
        self.offerLink = link
        self.hold = hold
    }

    /// Creates the record of a transfer of an earlier run. The store does not record whether the peer knows of the transfer, so assume that
    /// it does.
    init(loaded: LoadedTransfer) {
        self.init(row: loaded.row, stored: loaded.stored)
        self.isOffered = loaded.row.direction == .outgoing
    }

    /// The store operations that write its present state.
    var operations: [StoreOperation] { [.putResource(self.row)] + (self.stored.map { [.putTransfer($0)] } ?? []) }

    /// Whether it is not over; it may be interrupted.
    var isOpen: Bool { !self.row.state.isFinal }

    /// The conversation that it belongs to.
    var conversation: Conversation { Conversation(with: self.row.peerID, in: self.row.group?.id) }

    /// Whether it is neither over nor interrupted.
    var isMoving: Bool { self.isOpen && (self.link != nil || self.row.peerID.kind == .localsend && self.hasMover) }

    /// Whether an incoming transfer was accepted, by a user or by the policy.
    var isTaken: Bool { self.stored?.isTaken ?? false }

    /// Whether the peer is to be told of its end when it returns.
    var isUntold: Bool { !self.isOpen && self.stored != nil }

    /// Whether the spool has content of it that nothing works on.
    var hasContent: Bool { self.row.inSpool || self.reception.isContentLeft }

    /// Whether its row is being removed.
    var isBeingRemoved: Bool { self.unwantedBy != nil || self.remover != nil }

    /// Whether nothing works on it here. Until then its row is not removed, and it does not start again under its id.
    var isAtRest: Bool { !self.hasMover && !self.reception.isWithDisk }

    /// Whether it waits for a user's answer here.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .offered && !self.isTaken }

    /// Returns the row as of `now`, for a caller that asks. Between events, the stored rate would be stale.
    func shown(at now: MonotonicInstant) -> Resource {
        guard self.isOpen else { return self.row }
        var row = self.row
        row.queued = row.direction == .outgoing && row.state == .offered && !self.isMoving ? true : nil
        row.bytesPerSecond = !self.isMoving ? 0 : self.meter.bytesPerSecond(at: now)
        return row
    }

    // MARK: Moving

    /// Begins or resumes it on a connection, with a new mover.
    mutating func begin(on link: LinkID, at now: MonotonicInstant) {
        self.link = link
        self.hasMover = true
        self.upload = UploadStateMachine()
        self.download = DownloadStateMachine()
        self.accepted = nil
        self.rate = nil
        self.unrecordedSince = now
        self.lastMoved = now
    }

    /// Begins to send a file to a LocalSend device, or to receive one, whose content must have this SHA-256 if there is one.
    mutating func begin(for digest: [UInt8]?, at now: MonotonicInstant) {
        self.hasMover = true
        self.rate = nil
        self.offeredDigest = digest
        self.unrecordedSince = now
        self.lastMoved = now
    }

    /// Begins or resumes an incoming one, whose sender is charged. `caller` has accepted it and waits for its beginning.
    mutating func begin(on link: LinkID, at now: MonotonicInstant, for caller: CallID?, charged hold: HoldID?) {
        self.begin(on: link, at: now)
        self.caller = caller
        self.hold = hold
    }

    /// Returns the caller that waits for its beginning, which is answered now.
    mutating func answered() -> CallID? { self.caller.take() }

    mutating func stepUpload<Action>(_ event: (inout UploadStateMachine) -> Action) -> Action { event(&self.upload) }

    mutating func stepDownload<Action>(_ event: (inout DownloadStateMachine) -> Action) -> Action { event(&self.download) }

    mutating func stepReception<Action>(_ event: (inout ReceptionStateMachine) -> Action) -> Action { event(&self.reception) }

    /// Records that it waits for the next step, which has a time limit, or for none.
    mutating func waits(for limit: Limit?) { self.limit = limit }

    mutating func moverStopped() {
        self.hasMover = false
        self.reception.moverStopped()
    }

    /// Records the rate that its mover is told.
    mutating func paced(at rate: UInt64?) { self.rate = rate }

    /// Records that its sender is no longer charged.
    mutating func discharged() { self.hold = nil }

    // MARK: Sending

    /// Records that the opened source is offered. `source` is `nil` unless it differs from the one that the receiver accepted before.
    mutating func offer(changed source: OpenedSource?) {
        self.opened = source
        self.isOffered = true
        self.upload.opened(isChanged: source != nil)
    }

    /// Records the digest of the whole. Returns whether the receiver is to be told that everything was sent.
    mutating func digested(_ digest: ResourceDigest) -> Bool {
        guard self.upload.digested() else { return false }
        self.row.digest = digest.text
        return true
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

    // MARK: Offers

    /// Records a repeated offer, which is handled once nothing works on the transfer any more, or fewer are in progress.
    mutating func postpone(_ offer: ResourceOffer, on link: LinkID) { self.pendingOffer = PendingOffer(offer: offer, link: link) }

    /// Returns the postponed offer, which is handled now or never.
    mutating func takeOffer() -> PendingOffer? { self.pendingOffer.take() }

    /// Records a repeated offer. The source may have changed: if its size differs, the content kept here is dropped on acceptance.
    mutating func offeredAgain(_ offer: ResourceOffer, on link: LinkID) {
        self.row.size = offer.size
        self.attributes = offer.attributes
        self.offerLink = link
    }

    /// Records that a user has accepted the offer. Without a connection on which it can begin, it waits until `latest` like an interrupted
    /// one.
    mutating func accepted(on link: LinkID?, until latest: WallTime) {
        self.stored?.isTaken = true
        guard link == nil else { return }
        self.row.state = .paused
        self.isAbsent(until: latest)
    }

    // MARK: Progress

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

    // MARK: Interruptions

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

    /// Takes the transfer up after a restart. `held`: how much of its content is here, for an incoming one.
    mutating func takeUp(held: UInt64?, until latest: WallTime) {
        if self.row.state == .transferring, let stored = self.stored {
            // The process was killed during the transfer. The time of absence begins now.
            self.stored?.expiry = max(stored.expiry, latest)
        }
        let wasTaken = self.isTaken
        if self.row.direction == .incoming {
            // Bytes move only after acceptance: the disk has this row, but the earlier one that recorded acceptance was refused.
            if self.row.state != .offered { self.stored?.isTaken = true }
            self.row.transferred = held ?? 0
        }
        if self.row.state == .transferring || wasTaken { self.row.state = .paused }
    }

    /// Corrects the row of a transfer that an earlier run has ended, whose content is at `place` or was removed. Returns whether it changed.
    mutating func correct(place: String?) -> Bool {
        if let place {
            // The earlier run was killed after it had moved the content into place, and before it had committed that.
            self.row.path = place
            self.row.error = nil
            self.row.errorMessage = nil
        } else {
            // The disk could not undo the reception, and recorded the end later. The sweep removes the content.
            guard self.row.inSpool, self.row.direction == .incoming, !self.isOpen, self.row.state != .completed else { return false }
        }
        self.row.inSpool = false
        return true
    }

    // MARK: Ending

    /// Records that the peer has cancelled it, and need not be told of the end.
    mutating func cancelledByPeer() { self.isEndedByPeer = true }

    /// Records that the peer knows of its end, or need no longer be told.
    mutating func peerTold() { self.stored = nil }

    /// Records that it is received, as `row` says.
    mutating func received(as row: Resource) {
        self.row = row
        self.stored = nil
        self.link = nil
    }

    /// Records whether the row without content was written. If the disk refused it, the content stays until the row is removed, or until a
    /// later row says that there is no content.
    mutating func undone(isWritten: Bool) -> ReceptionStateMachine.UndoneAction {
        if !isWritten { self.row.inSpool = true }
        return self.reception.undone(isWritten: isWritten)
    }

    /// Records that another file has taken its place in the directory of received files.
    mutating func replaced() { self.row.path = nil }

    /// Records that the row on disk no longer has content.
    mutating func dropped() {
        self.row.inSpool = false
        self.reception.dropped()
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

    // MARK: Removal

    /// Records the call for the removal, which begins once nothing works on the transfer any more.
    mutating func removeAtRest(for call: CallID) { self.remover = call }

    /// Returns the call that waits for the removal: it begins now, or is refused.
    mutating func takeRemover() -> CallID? { self.remover.take() }

    mutating func removalBegan(_ commit: CommitID) { self.unwantedBy = commit }

    mutating func removalFailed() { self.unwantedBy = nil }

    /// Returns its sender's offer of it.
    func offer(in session: SessionID) -> ResourceOffer {
        let kind: ResourceOffer.Kind = self.row.kind == .directory ? .directory : .file
        return ResourceOffer(session: session, id: self.row.id, kind: kind, size: self.row.size, name: self.row.name)
    }
}
