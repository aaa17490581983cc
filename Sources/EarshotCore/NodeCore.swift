package import EarshotWire
import OrderedCollections

/// The decisions of a node, as a value. An input and the time come in and effects go out; there are no other side effects.
///
/// The shell (`Earshot`'s `Node`) performs the effects of one input in order and without waiting, before it passes the next one. A run is
/// therefore defined by its inputs: two cores with the same inputs do the same. The simulator relies on this.
///
/// Each concern has its storage here or in ``PeerRecord``, as a type that only the concern itself changes. The extensions of this type
/// handle the inputs, and call the concerns one after the other.
package struct NodeCore: Sendable {
    /// The peer id of this machine.
    package let id: PeerID
    /// The key with which this machine proves its identity, if it has one to sign with.
    let key: OwnKey?
    private(set) var settings: CoreSettings

    // Peers
    var records = RowTable<PeerID, PeerRecord>()
    var discovered: DiscoveryState
    var identityCopies = IdentityCopies()
    var names = NameIndex()
    var configuredDials = RowTable<ConfiguredPeer, ConfiguredDial>()
    var pins = PinnedPeers()
    /// The LocalSend devices, with their offers and sessions.
    var devices = DeviceTable()
    var links = LinkTable()
    /// The delayed answers to blocked peers.
    var lateAnswers = LateAnswers()

    // Agreement
    var invitations = InvitationTable()
    var groups = GroupTable()
    /// The limits on strangers' requests that a user here has to answer.
    var strangers: Strangers
    var decisions = DecisionQueue()

    // Verification
    var comparisonAttempts = ComparisonAttempts()

    var dataPaths: DataPaths
    var streams = StreamTable()
    var transfers = TransferTable()
    var unwritten = UnwrittenTransfers()

    // Messages
    var outgoing = OutgoingMessages()
    /// The message state of each conversation.
    var traffic = RowTable<Conversation, MessageTraffic>()
    var batches = SendingBatches()
    var messageIDs = MessageIDSource()
    var keeping = OutboxKeeping()
    var readReceipts = ReadReceipts()

    var deadlines = Deadlines<Deadline>()
    private(set) var isStopping = false
    /// The source of secrets.
    var random: any RandomNumberGenerator & Sendable
    private var holds: UInt64 = 0
    private var commits: UInt64 = 0

    // State of the input that is being handled
    var now = Now(monotonic: MonotonicInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
    /// The control connection on which the input came.
    var cause: LinkID?
    private var effects: [Effect] = []

    /// A deadline.
    enum Deadline: Hashable, Sendable {
        case dataPath(TransferID, attempt: UInt64)
        /// A stream that was not accepted expires.
        case stream(StreamID)
        /// A caller that waits for a stream times out.
        case streamAcceptor(CallID)
        /// The step that a transfer waits for times out.
        case transfer(ResourceID)
        /// Refused rows of transfers are written again.
        case transferRows
        /// The progress of a transfer over a data connection is checked.
        case progress(ResourceID)
        /// The grace period of a lost peer ends.
        case grace(PeerID)
        case redial(PeerID)
        case redialConfigured(ConfiguredPeer)
        /// An unneeded connection is closed.
        case idle(LinkID)
        case invitation(InvitationID)
        /// The inviter has been away for too long.
        case inviterAbsent(InvitationID)
        /// A blocked peer, which must not notice the block, hears `declined`.
        case lateAnswer(UInt64)
        /// A comparison's state expires.
        case comparison(PeerID)
        /// A peer that has asked for a comparison has not revealed its nonce in time.
        case comparisonStep(PeerID, VerificationID)
        case trust(PeerID)
        /// The refused row of a peer is written again.
        case keep(PeerID)
        /// The first message to expire is checked.
        case messages
        /// Messages that a peer has refused are sent again.
        case outboxRetry(Conversation)
        /// The receipts of earlier runs for a peer are loaded again.
        case receipts(PeerID)
        /// Notes of receipts are written together.
        case notes
        /// Refused statuses of queued messages are written again.
        case unsettled
        /// A decision whose caller waits until it is on disk is written again.
        indirect case again(Decision)
        /// A group has not changed for a while.
        case groupQuiet(GroupID)
        /// The refused rows of a group are written again.
        case keepGroup(GroupID)
        /// Changes of members' states are published together.
        case groupNews
        /// Transfers of a share may have stalled for so long that others begin.
        case share(ShareID)
        /// More records of a peer may be checked.
        case groupRecords(PeerID)
        /// A peer may be asked again for missing records of groups.
        case groupQuestions(PeerID)
        /// Trusted peers are invited for messages that wait for them.
        case queueInvitations
        /// A blocked device, which must not notice the block, is refused.
        case deviceRefusal(CallID)
        /// The tokens of a device's session expire.
        case deviceSession(SessionID)
        /// A device has given no sign of life for a while.
        case deviceSilence(PeerID)
        /// The next datagram of an announcement is due.
        case deviceAnnouncement
        /// Something is offered again to a device.
        case deviceRetry(PeerID)
        /// Something waits for a device that is not there.
        case deviceSearch
    }

    /// Creates a core. `random` generates secrets: the system's generator, except in simulations. `hasDiscovery` says whether discovery is
    /// in use.
    package init(
        id: PeerID, key: OwnKey? = nil, settings: CoreSettings, hasDiscovery: Bool, random: any RandomNumberGenerator & Sendable
    ) {
        self.id = id
        self.key = key
        self.settings = settings
        self.strangers = Strangers(
            invitationsPerAddress: settings.invitationsPerAddress, invitationBurst: settings.invitationBurst)
        self.discovered = DiscoveryState(isOn: hasDiscovery)
        self.random = random
        self.dataPaths = DataPaths()
    }

    /// Handles one input, and appends its effects to `effects`. Due deadlines are handled first, so that a machine that was suspended does
    /// nothing too late.
    package mutating func handle(_ input: Input, at now: Now, into effects: inout [Effect]) {
        self.now = now
        swap(&self.effects, &effects)
        self.cause = nil
        while let deadline = self.deadlines.popDue(at: now.monotonic) {
            self.came(deadline)
            self.advanceDecisions()
        }
        self.take(input)
        self.advanceDecisions()
        self.keepSpooledEnds()
        self.paceTransfers()
        self.cause = nil
        swap(&self.effects, &effects)
    }

    private mutating func take(_ input: Input) {
        switch input {
        case .call(let call, let command): self.take(command, call)
        case .link(let link, let event):
            self.cause = link
            switch event {
            case .proven(let facts, let isOtherDead): self.linkProven(link, facts, isOtherDead: isOtherDead)
            case .frame(let frame): self.frameCame(frame, on: link)
            case .heard: self.heard(on: link)
            case .messages(let messages): self.messagesCame(messages, on: link)
            case .liveMessages(let messages): self.liveMessagesCame(messages, on: link)
            case .closed(let end): self.linkClosed(link, end)
            }
        case .discovery(let event): self.discoveryReported(event)
        case .dial(let peer, let event): self.dialReported(peer, event)
        case .configuredDial(let peer, let event): self.configuredDialReported(peer, event)
        case .committed(let commit, let error): self.committed(commit, error)
        case .outbox(let rows): self.loadOutbox(rows)
        case .flush(let conversation): self.flushOutbox(conversation)
        case .bodies(let conversation, let ids, let bodies): self.bodiesLoaded(ids, for: conversation, bodies)
        case .kept(let ids, let error): self.kept(ids, error)
        case .delivered(let reports): self.delivered(reports)
        case .receipts(let peer, let ids): self.receiptsLoaded(ids, of: peer)
        case .taken(let ids, let sender): self.wereTaken(ids, of: sender)
        case .read(let ids, let sender): self.wereRead(ids, of: sender)
        case .need(let peer, let need): self.needed(need, of: peer)
        case .dataPath(let transfer, let event): self.dataPathChanged(transfer, event)
        case .stream(let stream, let report): self.streamReported(stream, report)
        case .callerGone(let call): self.callerGone(call)
        case .transfer(let resource, let report): self.transferReported(resource, report)
        case .signed(let id, let signatures): self.signed(id, signatures)
        case .checked(let id, let areValid): self.checked(id, areValid)
        case .transfers(let loaded, let ended): self.loadTransfers(loaded, ended)
        case .rowsRefused(let ids): self.rowsRefused(ids)
        case .streamsOver: self.endAllStreams()
        case .device(let event): self.deviceReported(event)
        case .settings(let settings):
            let old = self.settings
            self.settings = settings
            self.settingsChanged(from: old)
        case .start: self.start()
        case .stop:
            self.isStopping = true
            self.keepNotes()
            self.settleAgain()
            self.keepAgain()
        case .stopped: self.dismissCallers()
        case .deadline: break
        }
    }

    private mutating func came(_ deadline: Deadline) {
        switch deadline {
        case .dataPath(let transfer, let attempt): self.dataPathChanged(transfer, .expired(attempt: attempt))
        case .stream(let stream): self.streamExpired(stream)
        case .streamAcceptor(let call): self.acceptorExpired(call)
        case .transfer(let resource): self.transferExpired(resource)
        case .transferRows: self.keepRefusedRows()
        case .progress(let resource): self.askProgress(resource)
        case .grace(let peer): self.graceEnded(peer)
        case .redial(let peer): self.redialDue(peer)
        case .redialConfigured(let peer): self.dialConfigured(peer)
        case .idle(let link): self.closeIfIdle(link)
        case .invitation(let id): self.invitationExpired(id)
        case .inviterAbsent(let id): self.inviterStaysAway(id)
        case .lateAnswer(let number): self.giveLateAnswer(number)
        case .comparison(let peer): self.comparisonExpired(peer)
        case .comparisonStep(let peer, let attempt): self.comparisonStepExpired(peer, attempt)
        case .trust(let peer): if peer.kind == .localsend { self.expireDeviceTrust(peer) } else { self.expireTrust(peer) }
        case .keep(let peer): self.keepPeer(peer, andSession: true)
        case .messages: self.expireMessages()
        case .outboxRetry(let conversation): self.retryOutbox(conversation)
        case .receipts(let peer): if self.isTalking(with: peer) { self.sendReceipts(to: peer) }
        case .notes: self.keepNotes()
        case .unsettled: self.settleAgain()
        case .again(let decision): self.decide(decision)
        case .groupQuiet(let group): self.groupIsQuiet(group)
        case .keepGroup(let group): self.keepGroup(group)
        case .groupNews: self.publishGroupNews()
        case .share(let share): self.startShare(share)
        case .groupRecords(let peer): self.checkRecords(of: peer)
        case .groupQuestions(let peer): self.askLater(peer)
        case .queueInvitations: self.offerReach()
        case .deviceRefusal(let call): self.giveDeviceRefusal(call)
        case .deviceSession(let session): self.deviceSessionExpired(session)
        case .deviceSilence(let device): self.deviceIsSilent(device)
        case .deviceAnnouncement: self.sendDeviceAnnouncement()
        case .deviceRetry(let device): self.retryShipment(to: device)
        case .deviceSearch: self.searchDevices()
        }
    }

    /// Retries the writes that the disk has refused, before the end: otherwise the next start would load outdated rows.
    private mutating func keepAgain() {
        for deadline in self.deadlines.keys {
            switch deadline {
            case .keep, .keepGroup, .again, .transferRows:
                self.deadlines.cancel(deadline)
                self.came(deadline)
            default: break
            }
        }
    }

    /// The time at which `.deadline` has to come in, unless another input comes before it.
    package var nextDeadline: MonotonicInstant? { self.deadlines.next }

    // MARK: Helpers

    mutating func emit(_ effect: Effect) { self.effects.append(effect) }

    /// Runs code of a concern that appends effects itself.
    mutating func withEffects(_ body: (inout Self, inout [Effect]) -> Void) {
        var effects: [Effect] = []
        swap(&effects, &self.effects)
        body(&self, &effects)
        swap(&effects, &self.effects)
    }

    mutating func publish(_ event: CoreEvent) { self.effects.append(.publish(event)) }
    mutating func log(_ notice: Notice) { self.effects.append(.log(notice)) }
    mutating func send(_ frame: Frame, on link: LinkID?) { if let link { self.effects.append(.send(link, [frame])) } }
    mutating func set(_ deadline: Deadline, after delay: Duration) { self.deadlines.set(deadline, at: self.now.monotonic + delay) }

    /// Charges the peer of the present input a number of bytes until the hold is released. Returns `nil` if the input is not a peer's.
    mutating func hold(_ bytes: Int) -> HoldID? {
        guard let cause = self.cause else { return nil }
        self.holds += 1
        let hold = HoldID(number: self.holds)
        self.emit(.hold(hold, cause, bytes: bytes))
        return hold
    }

    mutating func release(_ hold: HoldID?) { if let hold { self.emit(.release(hold)) } }

    /// Returns the id of the next transaction.
    mutating func nextCommit() -> CommitID {
        self.commits += 1
        return CommitID(number: self.commits)
    }

    /// Returns a new identifier.
    mutating func fresh<Kind>() -> WireID<Kind> { WireID(using: &self.random) }
}
