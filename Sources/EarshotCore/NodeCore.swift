package import EarshotWire
import OrderedCollections

/// What a peer decides, as a value: an input and the time come in, effects go out, and nothing else happens.
///
/// The shell (`Earshot`'s `Node`) carries the effects of one input out, in order and without waiting, before it hands in the next one. So a
/// run is its inputs: two cores that are handed the same ones do the same, which is what the simulator plays with.
///
/// Each concern has its storage here or in ``PeerRecord``, as a type that alone changes it; the extensions of this type are what happens when
/// an input comes, and call the concerns one after the other.
package struct NodeCore: Sendable {
    /// Which peer this machine is.
    package let id: PeerID
    /// The key that it proves itself by, where it has one to sign with.
    let key: OwnKey?
    var settings: CoreSettings

    // Peers
    var records: OrderedDictionary<PeerID, PeerRecord> = [:]
    /// Which peer a sighting was of, so that its loss finds the record.
    var sightedPeers: [SightingKey: PeerID] = [:]
    /// Peers that are listed for nothing but that discovery sees them.
    var discoveredOnly: Set<PeerID> = []
    /// Whether the last new peer of discovery found no room in the list.
    var isDiscoveryFull = false
    var discoveryStatus: DiscoveryStatus
    var instanceName: String?
    var identityCopies = IdentityCopies()
    var names = NameIndex()
    var configuredDials: OrderedDictionary<ConfiguredPeer, ConfiguredDial> = [:]
    var pins = PinnedPeers()
    /// Which peer has proven its key on a connection that has not ended.
    var linkPeers: [LinkID: PeerID] = [:]
    /// Blocked peers' connections: they hear only `declined`.
    var mutedLinks: OrderedDictionary<LinkID, StandingLink.Current> = [:]
    /// What blocked peers are told after a while.
    var lateAnswers = LateAnswers()

    // Agreement
    var invitations = InvitationTable()
    var groups = GroupTable()
    /// What strangers wait for a person here to decide.
    var strangers: Strangers
    var decisions = DecisionQueue()

    // Verification
    var comparisonAttempts = ComparisonAttempts()

    var dataPaths: DataPaths
    var streams = StreamTable()
    var transfers = TransferTable()
    /// Of which transfers the disk has refused rows that are to be written again.
    var refusedRows: OrderedSet<ResourceID> = []
    /// Transfers whose end is on its way to the disk, and whose bodies in the spool go once it is there.
    var spooledEnds: OrderedDictionary<ResourceID, Resource> = [:]
    /// Those of them that have come with the present input: one look at the disk is for all.
    var newSpooledEnds: [Resource] = []

    // Messages
    var outgoing = OutgoingMessages()
    /// What is remembered of the messages of each conversation.
    var traffic: OrderedDictionary<Conversation, MessageTraffic> = [:]
    var batches = SendingBatches()
    var messageIDs = MessageIDSource()
    /// The sequence number of the last message that was sent to any peer.
    var lastSequence: UInt64 = 0
    /// The deadline that is looked at next.
    var messageExpiry: MonotonicInstant?
    var keeping = OutboxKeeping()
    /// Where it is known what has become of a queued message, and the disk has refused that.
    var unsettled: OrderedSet<Unsettled> = []
    /// Messages that were read here, and of which their senders have not yet said that they know it.
    var unnotedReads = UnnotedReads()
    /// Those of which the senders have said so: gathered, to be removed from the disk in one commit.
    var notes = ReceiptNotes()
    package internal(set) var isNoting = false
    /// Peers for which `loadReceipts` is under way, each with the notes that had not been committed when it began.
    var receiptLoads: [PeerID: ReceiptNotes] = [:]

    var deadlines = Deadlines<Deadline>()
    var isStopping = false
    /// Makes what no other may guess.
    var random: any RandomNumberGenerator & Sendable
    private var holds: UInt64 = 0
    private var commits: UInt64 = 0

    // Of the input that is being dealt with
    var now = Now(monotonic: MonotonicInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
    /// The control connection that it came on.
    var cause: LinkID?
    private var effects: [Effect] = []

    /// What comes due by itself.
    enum Deadline: Hashable, Sendable {
        case dataPath(TransferID, attempt: UInt64)
        /// A stream that nobody has accepted.
        case stream(StreamID)
        /// The time of a caller that waits for one.
        case streamAcceptor(CallID)
        /// The time of what a transfer waits for.
        case transfer(ResourceID)
        /// Rows of transfers that the disk has refused are written again.
        case transferRows
        /// How far a transfer over a data connection is, is looked at.
        case progress(ResourceID)
        /// The grace of a peer that is not seen any more.
        case grace(PeerID)
        case redial(PeerID)
        case redialConfigured(ConfiguredPeer)
        /// A connection that nothing needs goes.
        case idle(LinkID)
        case invitation(InvitationID)
        /// The peer that made it has been away for too long.
        case inviterAbsent(InvitationID)
        /// A peer that must not notice that it is blocked hears `declined`.
        case lateAnswer(UInt64)
        /// The time of a comparison's state is over.
        case comparison(PeerID)
        /// A peer that has asked for a comparison has not revealed in time.
        case comparisonStep(PeerID, VerificationID)
        case trust(PeerID)
        /// What could not be written of a peer is written again.
        case keep(PeerID)
        /// The first message to be given up is looked at.
        case messages
        /// What a peer has refused is tried again.
        case outboxRetry(Conversation)
        /// Which of a peer's messages were read in earlier runs, is asked again.
        case receipts(PeerID)
        /// Notes of receipts are written together.
        case notes
        /// What has become of queued messages, and could not be written, is written again.
        case unsettled
        /// A decision whose caller hears of it only once it is on disk is written again.
        indirect case again(Decision)
        /// A group has not changed for a while.
        case groupQuiet(GroupID)
        /// What could not be written of a group is written again.
        case keepGroup(GroupID)
        /// Changes of members' states are published together.
        case groupNews
        /// Transfers of a share may have stood still for so long that others of it begin.
        case share(ShareID)
        /// More records of a peer may be checked.
        case groupRecords(PeerID)
        /// A peer may be asked again for what is lacking of groups.
        case groupQuestions(PeerID)
        /// Trusted peers are invited for what waits for them.
        case queueInvitations
    }

    /// `random` makes what no other may guess: the system's generator, where nothing is simulated. `discovery` says whether there is any.
    package init(
        id: PeerID, key: OwnKey? = nil, settings: CoreSettings, hasDiscovery: Bool, random: any RandomNumberGenerator & Sendable
    ) {
        self.id = id
        self.key = key
        self.settings = settings
        self.strangers = Strangers(
            invitationsPerAddress: settings.invitationsPerAddress, invitationBurst: settings.invitationBurst)
        self.discoveryStatus = DiscoveryStatus(backend: .none, state: hasDiscovery ? .starting : .off)
        self.random = random
        self.dataPaths = DataPaths()
    }

    /// Takes one input at a time, and appends what is to be done to `effects`. What is due by then is dealt with first: a machine that was
    /// suspended does nothing late that it had to do before.
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
        case .settings(let settings): self.use(settings)
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
        case .trust(let peer): self.expireTrust(peer)
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
        }
    }

    /// What the disk has refused is tried once more before the end: what is over here would be back at the next start.
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

    /// When `.deadline` is to come in, unless another input comes before it.
    package var nextDeadline: MonotonicInstant? { self.deadlines.next }

    // MARK: What others call

    mutating func emit(_ effect: Effect) { self.effects.append(effect) }

    /// For a concern that appends its effects itself.
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

    /// Charges the peer whose input this is so many bytes until that is released; `nil` where it is no peer's.
    mutating func hold(_ bytes: Int) -> HoldID? {
        guard let cause = self.cause else { return nil }
        self.holds += 1
        let hold = HoldID(number: self.holds)
        self.emit(.hold(hold, cause, bytes: bytes))
        return hold
    }

    mutating func release(_ hold: HoldID?) { if let hold { self.emit(.release(hold)) } }

    /// Names the next transaction.
    mutating func nextCommit() -> CommitID {
        self.commits += 1
        return CommitID(number: self.commits)
    }

    /// A fresh identifier.
    mutating func fresh<Kind>() -> WireID<Kind> { WireID(using: &self.random) }
}
