import DequeModule
import Dispatch
public import EarshotWire
import FoundationEssentials
public import Logging
public import NIOCore
import NIOPosix
import OrderedCollections
import Synchronization

/// A peer of the local network: discovers other peers, establishes sessions with them, and carries messages, streams and resources.
///
/// An actor that owns all decisions and tables. Channel handlers do the I/O of connections, the `Store` and the `Spool` that of disks, and
/// discovery is injected. All external input arrives as a `NodeInput` on one queue and is handled in order. The node commits data before
/// it tells others that the data is safe: changes of the store go through one queue, in order. Dependent output, such as an
/// acknowledgement or an answer, is sent from a change's completion.
///
/// To use it, call `init`, `start()`, which binds the port, and `run()`, which works until its task is cancelled.
public actor Node {
    /// The id of this node.
    public nonisolated let id: PeerID
    /// The log of the node's events, for any number of readers.
    public nonisolated let events: EventLog

    /// The event loop of the node and its control connections. A caller on this loop needs no change of threads. Nothing may block the
    /// loop for longer than about a millisecond.
    public nonisolated let eventLoop: any EventLoop

    /// The executor of the event loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// The current settings. They may change while the node runs, so read them when they are needed.
    var configuration: Configuration
    /// The lock of the state directory, held until the node has stopped. `nil` if the program holds the lock, or if there is no state
    /// directory.
    private let stateLock: Mutex<StateLock?>
    let store: Store
    let spool: Spool
    /// Whether the node keeps nothing after its program ends (``Configuration/ephemeral(displayName:serviceType:)``).
    nonisolated let isEphemeral: Bool
    /// The directory of an ephemeral node's spool.
    private let temporary: TemporaryDirectory?
    /// The messages in an ephemeral node's inbox that the program has not taken. Their senders wait for the acknowledgements.
    var untaken: [PeerID: Set<MessageID>] = [:]
    let logger: Logger
    /// The group of the one loop that serves the node, its control connections and, if the owner chooses, its callers.
    let group: MultiThreadedEventLoopGroup
    let dataGroup: MultiThreadedEventLoopGroup
    private nonisolated let executor: any SerialExecutor
    let transport: Transport
    let startedAt = WallTime(Date()).date

    /// The queue of all external input.
    nonisolated let input: NodeInputs
    /// Work that outlives a call; runs in the node's task group.
    let jobs: AsyncStream<@Sendable () async -> Void>
    nonisolated let job: AsyncStream<@Sendable () async -> Void>.Continuation

    /// The core, which makes all decisions.
    var core: NodeCore
    var coreShell = CoreShell()
    /// The peers' control connections, by the core's ids.
    var links: [LinkID: Connection] = [:]

    // Discovery
    /// The current discovery, or the next one while the previous one ends.
    var discovery: (any PeerDiscovery)? {
        get { self.currentDiscovery.value }
        set { self.currentDiscovery.value = newValue }
    }
    nonisolated let currentDiscovery: CurrentDiscovery
    var isDiscoveryReplaced = false
    /// Ends the running discovery.
    var discoveryStopper: AsyncStream<Never>.Continuation?
    var listeningPort: UInt16 = 0
    var isStopping = false
    private(set) var isRunning = false

    // Resources
    /// The movers of resources' bytes.
    var transferMovers: [ResourceID: TransferMover] = [:]
    /// Content that was opened for callers. The first transfer that starts takes it.
    var openedSources: [ResourceID: OpenedContent] = [:]
    /// The files that callers hold open for transfers under way.
    var heldFiles: [ResourceID: HeldFile] = [:]
    /// Rows to be written, one transaction per batch. The last batch stays open until other work that may concern the same rows is queued.
    var rowBatches: Deque<RowBatch> = []
    var isRowBatchOpen = false
    /// The rows of the batches that are being written, in order.
    var rowsUnderWay: Deque<[ResourceID]> = []
    /// The data connections of transfers.
    var dataConnections: [TransferID: DataConnection] = [:]
    /// The data connection that is being reported to the core.
    var attachedData: DataConnection?

    // Streams
    /// The movers of streams' bytes. They stay as long as their streams are listed.
    var streamMovers: [StreamID: StreamMover] = [:]

    // LocalSend devices
    /// The transport of LocalSend; `nil` without one.
    let devices: (any DeviceTransport)?
    /// The port at which LocalSend devices reach this node.
    var devicePort: UInt16?
    /// Why this node does not listen to LocalSend devices.
    var deviceError: String?
    /// Ends the running transport.
    var deviceStopper: AsyncStream<Never>.Continuation?
    /// The bodies of devices' uploads, by their calls.
    var deviceBodies: [CallID: BodyFeed] = [:]
    /// This machine's links, to which announcements must belong.
    let deviceLinks = CurrentLinks()
    /// The attempts to send something to a device.
    var shipments: [ShipmentID: RunningShipment] = [:]
    nonisolated let deviceDatagrams = DeviceDatagrams()

    /// The totals of this run.
    var counters = NodeMetrics.Counters()

    /// The account of the peer that caused the current work, by its frames or their consequences (``Node/charge(_:)``).
    var cause: PeerAccount?

    // The store's queue
    var storeQueue = StoreQueue()
    /// The number of batches at the store: at most two of messages, or one of another kind.
    var storeBatches = 0
    /// Whether these batches hold messages.
    var isStoreDelivering = false
    /// Whether a call of `pumpStore` is scheduled on the loop.
    var isStoreAsked = false
    /// The continuation of a stop that waits for an empty queue.
    var storeDrained: CheckedContinuation<Void, Never>?
    /// Whether the node has stopped. Nothing is written any more, and later callers get an error.
    var isStoreClosed = false
    var unreadMessages = 0
    var pruning: Scheduled<Void>?
    /// The clock for the expiry of data on disk.
    var runningClock = RunningClock()

    /// Opens the state directory: creates or loads the identity, and loads the persistent state. Does not use the network. An ephemeral
    /// node opens no state directory, and creates a temporary directory for received content.
    ///
    /// - Throws: `invalid-parameter` for settings outside their limits, `storage` if the state or the temporary directory cannot be used,
    ///   `conflict` if another node, in any process, holds the state directory. This node holds it until it has stopped.
    public init(configuration: Configuration, discovery: (any PeerDiscovery)?, logger: Logger) async throws(EarshotError) {
        try await self.init(configuration: configuration, discovery: discovery, devices: nil, logger: logger)
    }

    /// Opens the state directory of a node that also speaks LocalSend, if the configuration says so.
    package init(
        configuration: Configuration, discovery: (any PeerDiscovery)?, devices: (any DeviceTransport)?, logger: Logger
    ) async throws(EarshotError) {
        try DiscoveryInfo.validate(configuration.discoveryInfo)
        if let directory = configuration.receiveDirectory { try Publisher.check(directory) }
        // First, because a program that retries would otherwise create the following objects again.
        let authorities = try CertificateAuthorities(paths: configuration.authorities)
        self.configuration = configuration
        self.currentDiscovery = CurrentDiscovery(discovery)
        self.devices = devices
        self.logger = logger
        if let directory = configuration.stateDirectory { try Self.makeDirectory(directory) }
        // Before reading the directory: the start of a second node would treat the content of running transfers as leftovers.
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
        // Before the core has any data that expires.
        self.runningClock = RunningClock(
            from: try await self.store.runningTime(beginningWith: WallTime(self.now)), at: self.transport.timers.now)
        let state = try await self.store.load()
        // Drops sessions of a previous key of this machine: the peers would not recognise the new key.
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
    /// - Throws: `unavailable` if the requested port is in use, or if no port can be bound.
    public func start() async throws(EarshotError) {
        do throws(EarshotError) {
            if self.stateLock.withLock({ $0 == nil }) {
                let lock = try Self.lock(self.configuration)
                self.stateLock.withLock { $0 = lock }
            }
            self.listeningPort = try await self.transport.listen(port: self.configuration.port, isFixed: self.configuration.portIsFixed)
            await self.listenToDevices()
        } catch {
            // Released here, so that a program that retries with a new node does not wait for references to this one.
            self.stateLock.withLock { $0 = nil }
            throw error
        }
    }

    /// Runs until its task is cancelled, then closes the connections in order and keeps the sessions. Call this once, after `start`. A
    /// second call returns immediately.
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
        // The jobs that move received files have ended as well.
        self.stateLock.withLock { $0 = nil }
        self.events.finish()
        do {
            try await self.dataGroup.shutdownGracefully()
        } catch {
            self.logger.warning("the event loops did not stop in order", metadata: ["error": "\(error)"])
        }
    }

    deinit {
        // Only now, because a caller that still uses the node is answered on its loop.
        let queue = DispatchQueue(label: "earshot.end")
        self.group.shutdownGracefully(queue: queue) { _ in }
        if !self.isRunning { self.dataGroup.shutdownGracefully(queue: queue) { _ in } }
    }

    /// Starts discovery, the core and the pruning of the inbox.
    private func begin() {
        self.beginDiscovery()
        self.beginDevices()
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
            // The handler bounds this wait: it closes the channel a second after its goodbye.
            try? await connection.channel.closeFuture.get()
        }
        self.releaseWaiters()
        self.job.finish()
    }

    static var stopping: EarshotError { .stopping }
    static var callerCancelled: EarshotError { EarshotError(.cancelled, "the caller's task was cancelled") }

    /// Answers all pending callers when the node has stopped.
    private func releaseWaiters() {
        self.handle(Input.stopped)
        for answer in self.coreShell.calls.values { answer(.failure(Self.stopping)) }
        self.coreShell.calls = [:]
    }

    private func handle(_ input: NodeInput) {
        // Handles due deadlines first, so that the sender of the next frames is not charged for them.
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
        case .deviceAnnounced(let info, let address, let isAnswer): self.handleAnnouncement(info, address, isAnswer)
        }
    }

    /// Continues a connection's turn, and counts the time towards that turn.
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

    /// Schedules `timer` as an input at `deadline`. If a peer caused it, the peer is charged `charge` bytes until then.
    @discardableResult
    func schedule(_ timer: NodeTimer, at deadline: MonotonicInstant, charge: Int = EarshotLimits.waitCharge) -> Scheduled<Void> {
        let charge = self.charge(charge)
        return self.transport.timers.schedule(at: deadline) { [input] in input.yield(.timer(timer, charge)) }
    }

    /// Runs work in a job outside the node's queue, until the work ends or the node stops.
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
