import DequeModule
import Dispatch
public import EarshotWire
import FoundationEssentials
public import Logging
public import NIOCore
import NIOPosix
import OrderedCollections
import Synchronization

/// One peer of the local network: finds others, agrees with them on sessions, and carries messages, streams and resources.
///
/// An actor that owns all decisions and every table; bytes are the channel handlers' affair, disks the `Store`'s and the
/// `Spool`'s, discovery is injected. Everything from outside arrives as a `NodeInput` on one queue and is dealt with in
/// order. What others are told is safe has been committed first: changes to the store go through one queue, in order, and
/// what depends on them (an acknowledgement, an answer) is sent from its completion.
///
/// Use: `init`, `start()` (binds the port), then `run()` until its task is cancelled.
public actor Node {
    /// Who we are.
    public nonisolated let id: PeerID
    /// Everything that happens, for any number of readers.
    public nonisolated let events: EventLog

    /// What the node runs on, and its control connections: a caller on it changes no threads. Nothing may hold it up for
    /// longer than about a millisecond.
    public nonisolated let eventLoop: any EventLoop

    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Read where it is needed: it may change while the node runs.
    var configuration: Configuration
    /// Of the state directory, until this has stopped; `nil` where the program holds it, or there is none.
    private let stateLock: Mutex<StateLock?>
    let store: Store
    let spool: Spool
    /// Whether nothing of it outlives its program (``Configuration/ephemeral(displayName:serviceType:)``).
    nonisolated let isEphemeral: Bool
    /// Where the spool of an ephemeral node is.
    private let temporary: TemporaryDirectory?
    /// Of an ephemeral node: messages in the inbox that the program has not taken, whose senders wait for that.
    var untaken: [PeerID: Set<MessageID>] = [:]
    let logger: Logger
    /// One loop: the node's own, its control connections' and, where the owner likes, its callers'.
    let group: MultiThreadedEventLoopGroup
    let dataGroup: MultiThreadedEventLoopGroup
    private nonisolated let executor: any SerialExecutor
    let transport: Transport
    let startedAt = WallTime(Date()).date

    /// Everything from outside, in order.
    nonisolated let input: NodeInputs
    /// Work that outlives a call; runs in the node's task group.
    let jobs: AsyncStream<@Sendable () async -> Void>
    nonisolated let job: AsyncStream<@Sendable () async -> Void>.Continuation

    /// What decides everything.
    var core: NodeCore
    var coreShell = CoreShell()
    /// The peers' control connections, by the names that the core has for them.
    var links: [LinkID: Connection] = [:]

    // Discovery
    /// The one that runs, or is to run once the one before it has ended.
    var discovery: (any PeerDiscovery)? {
        get { self.currentDiscovery.value }
        set { self.currentDiscovery.value = newValue }
    }
    nonisolated let currentDiscovery: CurrentDiscovery
    var isDiscoveryReplaced = false
    /// Ends the one that runs.
    var discoveryStopper: AsyncStream<Never>.Continuation?
    var listeningPort: UInt16 = 0
    var isStopping = false
    private(set) var isRunning = false

    // Resources
    /// What moves their bytes.
    var transferMovers: [ResourceID: TransferMover] = [:]
    /// What was opened for callers, by the transfers of which the first that begins has it.
    var openedSources: [ResourceID: OpenedContent] = [:]
    /// What is to be written of them, each together; more may join the last one until other work that may be about the same rows is queued.
    var rowBatches: Deque<RowBatch> = []
    var isRowBatchOpen = false
    /// Those whose turn has come, by what they write.
    var rowsUnderWay: Deque<[ResourceID]> = []
    /// Data connections, and what leads to them.
    var dataHearers: [UInt64: DataHearer] = [:]
    /// The attempt of each transfer that has one.
    var openAttempts: [TransferID: UInt64] = [:]
    var dataAttempts: UInt64 = 0
    /// What is just being reported to the core.
    var attachedData: DataConnection?

    // Streams
    /// What moves their bytes, and what is left of it as long as they are listed.
    var streamMovers: [StreamID: StreamMover] = [:]

    /// How much there has been in this run.
    var counters = NodeMetrics.Counters()

    /// On whose account the node works just now: of the peer whose frames, or what they have led to, it deals with (``Node/charge(_:)``).
    var cause: PeerAccount?

    // The store's queue
    var storeQueue = StoreQueue()
    /// How many batches of it the disk has: two of messages, or one.
    var storeBatches = 0
    /// Whether they are of messages.
    var isStoreDelivering = false
    /// Whether the loop comes to it soon.
    var isStoreAsked = false
    /// The stop that waits until there is nothing left.
    var storeDrained: CheckedContinuation<Void, Never>?
    /// The node has stopped: nothing is written any more, and callers that ask for it are told so.
    var isStoreClosed = false
    var unreadMessages = 0
    var pruning: Scheduled<Void>?
    /// By which what is on disk expires.
    var runningClock = RunningClock()

    /// Opens the state directory: makes or loads the identity, and loads what was kept. Nothing touches the network yet. An ephemeral node has
    /// nothing to open, and makes a directory for what it receives.
    ///
    /// - Throws: `invalid-parameter` for settings outside their limits, `storage` where the state, or that directory, cannot be used,
    ///   `conflict` where another node has the state directory, in whatever process: it is this one's until it has stopped.
    public init(configuration: Configuration, discovery: (any PeerDiscovery)?, logger: Logger) async throws(EarshotError) {
        try DiscoveryInfo.validate(configuration.discoveryInfo)
        if let directory = configuration.receiveDirectory { try Publisher.check(directory) }
        // Before anything is made that a program which tries again would make again.
        let authorities = try CertificateAuthorities(paths: configuration.authorities)
        self.configuration = configuration
        self.currentDiscovery = CurrentDiscovery(discovery)
        self.logger = logger
        if let directory = configuration.stateDirectory { try Self.makeDirectory(directory) }
        // Before anything in it is read: another one's start would take what this one has under way for left behind.
        self.stateLock = Mutex(try Self.lock(configuration))
        let identity = try Identity.load(configuration)
        self.id = identity.id
        self.isEphemeral = configuration.stateDirectory == nil
        self.store = try Store(directory: configuration.stateDirectory, inbox: configuration.inboxLimits) { () throws(EarshotError) in
            if let directory = configuration.stateDirectory { try Node.setContentAside(in: directory, logger) }
        }
        if let directory = configuration.stateDirectory {
            self.temporary = nil
            self.spool = try Spool(directory: directory)
        } else {
            let temporary = try TemporaryDirectory()
            self.temporary = temporary
            self.spool = try Spool(directory: temporary.path)
        }
        self.events = EventLog(epoch: WireID<SessionKind>.random().description)
        (self.jobs, self.job) = AsyncStream.makeStream()
        self.core = NodeCore(
            id: identity.id, key: OwnKey(publicKey: identity.publicKey, scheme: identity.scheme), settings: configuration.core,
            hasDiscovery: discovery != nil, random: KernelRandomness())
        self.group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        self.dataGroup = MultiThreadedEventLoopGroup(numberOfThreads: min(4, max(2, System.coreCount)))
        self.eventLoop = self.group.next()
        self.executor = self.eventLoop.executor
        let turns = try await LoopTurns.make(on: self.eventLoop)
        self.input = NodeInputs(turns)
        do {
            self.transport = try Transport(
                identity: identity, authorities: authorities, configuration: configuration, group: self.group, turns: turns,
                dataGroup: self.dataGroup, logger: logger, input: self.input)
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.storage, "cannot set TLS up with the identity: \(error)", underlying: error)
        }
        do throws(EarshotError) {
            try await self.loadState()
        } catch {
            self.stateLock.withLock { $0 = nil }
            throw error
        }
    }

    private static func lock(_ configuration: Configuration) throws(EarshotError) -> StateLock? {
        guard let directory = configuration.stateDirectory, !configuration.isStateLocked else { return nil }
        return try StateLock(directory: directory)
    }

    private static func makeDirectory(_ path: String) throws(EarshotError) {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw EarshotError(.storage, "cannot make the state directory \(path): \(error)", underlying: error)
        }
    }

    private func loadState() async throws(EarshotError) {
        // Before the core has anything that expires.
        self.runningClock = RunningClock(
            from: try await self.store.runningTime(beginningWith: WallTime(self.now)), at: self.transport.timers.now)
        let state = try await self.store.load()
        // Of a key that this machine has no longer: the peers would not know who asks.
        let sessions = state.sessions.filter { $0.members.contains(self.id) }
        let members = Set(sessions.flatMap(\.members))
        var peers: [StoredPeer] = []
        for peer in state.peers {
            guard peer.isDecided || members.contains(peer.id) else {
                self.persist([.removePeer(peer.id)]) { _ in }
                continue
            }
            peers.append(peer)
            if peer.isTLSPinned { self.transport.tlsPins.apply(.keep, to: peer.id) }
        }
        for session in state.sessions where !session.members.contains(self.id) {
            self.persist(session.members.map { .removeSession(with: $0) }) { _ in }
        }
        self.core.load(peers, sessions, state.groups)
        try await self.loadTransfers(state)
        self.handle(.outbox(try await self.store.outbox()))
        self.unreadMessages = await self.store.unreadCount()
    }

    /// Binds the listening port.
    /// - Throws: `unavailable` where the port is taken and was asked for, or nothing can be bound.
    public func start() async throws(EarshotError) {
        do throws(EarshotError) {
            if self.stateLock.withLock({ $0 == nil }) {
                let lock = try Self.lock(self.configuration)
                self.stateLock.withLock { $0 = lock }
            }
            self.listeningPort = try await self.transport.listen(port: self.configuration.port, isFixed: self.configuration.portIsFixed)
        } catch {
            // A program that drops this one and makes another is not to wait for what may still hold it.
            self.stateLock.withLock { $0 = nil }
            throw error
        }
    }

    /// Works until its task is cancelled; then closes the connections in order and keeps the sessions. Call after `start`, and once: a
    /// second call returns at once.
    public func run() async {
        guard !self.isRunning else { return }
        self.isRunning = true
        await withDiscardingTaskGroup { group in
            let jobs = self.jobs
            group.addTask {
                await withDiscardingTaskGroup { group in
                    for await job in jobs { group.addTask { await job() } }
                    group.cancelAll()
                }
            }
            self.pumpStore()
            self.begin()
            await self.input.run { [weak self] input in
                self?.assumeIsolated { $0.handle(input) }
            }
            await self.stop()
            group.cancelAll()
        }
        // What puts received files in place has ended by now, too.
        self.stateLock.withLock { $0 = nil }
        self.events.finish()
        do {
            try await self.dataGroup.shutdownGracefully()
        } catch {
            self.logger.warning("the event loops did not stop in order", metadata: ["error": "\(error)"])
        }
    }

    deinit {
        // Not before: a caller that still asks the node something is answered on its loop.
        let queue = DispatchQueue(label: "earshot.end")
        self.group.shutdownGracefully(queue: queue) { _ in }
        if !self.isRunning { self.dataGroup.shutdownGracefully(queue: queue) { _ in } }
    }

    /// What runs by itself from the start.
    private func begin() {
        self.beginDiscovery()
        self.handle(Input.start)
        self.schedulePruning(after: EarshotLimits.firstPruning)
    }

    private func stop() async {
        self.isStopping = true
        self.handle(Input.stop)
        await self.transport.stopListening()
        self.transport.stopDialling()
        self.transport.closeUnproven()
        let connections = Array(self.links.values)
        self.endAllStreams()
        for connection in connections { connection.close() }
        await self.drainStore()
        do throws(EarshotError) {
            try await self.store.noteRunningTime(self.runningTime)
        } catch {
            self.logger.warning("cannot note how long the daemon has run", metadata: ["error": "\(error)"])
        }
        for connection in connections {
            // Bounded by the handler, which closes for good a second after its goodbye.
            try? await connection.channel.closeFuture.get()
        }
        self.releaseWaiters()
        self.job.finish()
    }

    static var stopping: EarshotError { .stopping }
    static var callerCancelled: EarshotError { EarshotError(.cancelled, "the caller's task was cancelled") }

    /// No caller waits for a node that has stopped.
    private func releaseWaiters() {
        self.handle(Input.stopped)
        for answer in self.coreShell.calls.values { answer(.failure(Self.stopping)) }
        self.coreShell.calls = [:]
    }

    private func handle(_ input: NodeInput) {
        // What is due by now is no doing of the peer whose frames come next.
        if input.account != nil, let due = self.inCore({ $0.nextDeadline }), due <= self.transport.timers.now {
            self.handle(Input.deadline)
        }
        self.working(for: input.account) { self.dealWith(input) }
    }

    private func dealWith(_ input: NodeInput) {
        switch input {
        case .discovery(let event): self.handleDiscovery(event)
        case .heartbeat(let answer): answer()
        case .discoveryEnded: self.discoveryEnded()
        case .connection(.proven(let connection)): self.connectionProven(connection)
        case .connection(.received(let connection, let frames, let weight)):
            self.inTurn { self.received(frames, weight: weight, on: connection) }
        case .connection(.receivedUnreliable(let connection, let messages, let weight)):
            self.inTurn { self.handle(.link(connection.id, .liveMessages(messages))) }
            connection.turnEnded(weight, isMember: self.isMember(connection))
        case .connection(.closed(let connection, let end)): self.connectionClosed(connection, end)
        case .core(let input): self.handle(input)
        case .timer(let timer, _): self.timerFired(timer)
        case .dataAttached(let connection, let attempt): self.dataAttached(connection, attempt)
        case .dataDialFailed(let transfer, let attempt, let error): self.dataDialFailed(transfer, attempt, error)
        case .streamsOver: self.endAllStreams()
        }
    }

    /// Goes on with what a connection's turn has decoded: its time is that turn's.
    private func inTurn(_ work: () -> Void) {
        let began = ContinuousClock.now
        work()
        self.transport.turns.pace.note(work: 0, took: .now - began)
    }

    private func timerFired(_ timer: NodeTimer) {
        switch timer {
        case .core: self.coreIsDue()
        case .pruneInbox: self.pruneInbox()
        }
    }

    /// Has `timer` arrive as an input at `deadline`; what a peer has caused costs it `charge` bytes until then.
    @discardableResult
    func schedule(_ timer: NodeTimer, at deadline: MonotonicInstant, charge: Int = EarshotLimits.waitCharge) -> Scheduled<Void> {
        let charge = self.charge(charge)
        return self.transport.timers.schedule(at: deadline) { [input] in input.yield(.timer(timer, charge)) }
    }

    /// Runs work beside the node's queue, until it ends by itself or the node stops.
    func spawn(_ work: @escaping @Sendable () async -> Void) {
        guard let charge = self.charge(EarshotLimits.waitCharge) else {
            self.job.yield(work)
            return
        }
        self.job.yield {
            await work()
            withExtendedLifetime(charge) {}
        }
    }
}
