internal import CLinux
import EarshotWire
import FoundationEssentials
import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Listens and dials: creates the channels whose handlers report to the node.
package final class Transport: Sendable {
    package let timers: Timers
    package let lookup: HostLookup
    /// The peers that have used TLS with this node.
    let tlsPins = TLSPins()
    /// The peers with a connection.
    let connectedPeers: ConnectedPeers
    /// The accounts of the peers.
    let accounts: PeerAccounts
    /// The tickets of expected data connections.
    let tickets = DataTickets()
    let contexts: TLSContexts
    /// The examiner of certificate chains; `nil` without authorities.
    let chainExaminer: ChainExaminer?
    /// The turns of TLS handshakes, by event loop.
    private let handshakeTurns: [ObjectIdentifier: HandshakeTurns]
    let group: MultiThreadedEventLoopGroup
    /// The turns that control connections take with the node.
    let turns: LoopTurns
    /// The event loops of data connections, so that bulk transfers never delay a control connection.
    let dataGroup: MultiThreadedEventLoopGroup
    let logger: Logger
    let identity: Identity
    private let currentConfiguration: Mutex<Node.Configuration>
    private let emit: @Sendable (ConnectionEvent) -> Void
    private let unproven: UnprovenConnections
    let handshakeFailures = HandshakeFailures()
    private let listener = Mutex<(any Channel)?>(nil)
    /// Dials that have not reached a proven peer yet; `nil` after dialling was stopped.
    private let dials = Mutex<[LinkID: any Channel]?>([:])

    init(
        identity: Identity, authorities: CertificateAuthorities, configuration: Node.Configuration, group: MultiThreadedEventLoopGroup,
        turns: LoopTurns, dataGroup: MultiThreadedEventLoopGroup, logger: Logger, input: NodeInputs
    ) throws {
        self.identity = identity
        self.currentConfiguration = Mutex(configuration)
        self.contexts = try TLSContexts(identity)
        let now = configuration.now ?? { Date() }
        self.chainExaminer = authorities.isEmpty ? nil : try ChainExaminer(authorities, now: now, logger: logger)
        self.group = group
        self.turns = turns
        self.dataGroup = dataGroup
        let trimmer = HeapTrimmer(on: dataGroup)
        self.accounts = PeerAccounts { trimmer.trimSoon() }
        self.unproven = UnprovenConnections { trimmer.trimSoon() }
        self.logger = logger
        let connectedPeers = ConnectedPeers()
        self.connectedPeers = connectedPeers
        self.emit = { event in
            connectedPeers.note(event)
            input.yield(.connection(event))
        }
        let loops = Array(group.makeIterator()) + Array(dataGroup.makeIterator())
        self.handshakeTurns = Dictionary(uniqueKeysWithValues: loops.map { (ObjectIdentifier($0), HandshakeTurns(on: $0)) })
        for loop in dataGroup.makeIterator() { loop.execute { earshot_take_long_turns() } }
        self.timers = configuration.timers ?? .system(of: group)
        self.lookup = configuration.lookup ?? HostLookup()
    }

    /// The configuration for new connections.
    var configuration: Node.Configuration { self.currentConfiguration.withLock { $0 } }

    /// Sets the configuration for new connections.
    func use(_ configuration: Node.Configuration) {
        self.currentConfiguration.withLock { $0 = configuration }
    }

    /// Returns the handler that precedes TLS during its handshake on a loop.
    func handshakeGate(on loop: any EventLoop) -> HandshakeGate {
        HandshakeGate(turns: self.handshakeTurns[ObjectIdentifier(loop)] ?? HandshakeTurns(on: loop))
    }

    // MARK: Listening

    /// Binds `port` on every address, over IPv6 and IPv4 if the kernel has both, and returns the port.
    func listen(port: UInt16, isFixed: Bool) async throws(EarshotError) -> UInt16 {
        do {
            return try await self.bind(port: Int(port))
        } catch {
            guard !isFixed, port != 0, (error as? IOError)?.errnoCode == EADDRINUSE else {
                throw EarshotError(
                    .unavailable, "cannot listen on TCP port \(port): \(Self.reason(error)); choose another port, or 0 for any",
                    underlying: error)
            }
        }
        do {
            return try await self.bind(port: 0)
        } catch {
            throw EarshotError(.unavailable, "cannot listen on any TCP port: \(Self.reason(error))", underlying: error)
        }
    }

    private func bind(port: Int) async throws -> UInt16 {
        let channel = try await self.serverBootstrap().bindEverywhere(port: port)
        self.listener.withLock { $0 = channel }
        return UInt16(channel.localAddress?.port ?? port)
    }

    private func serverBootstrap() -> ServerBootstrap {
        ServerBootstrap.forStrangers(on: self.group, backlog: 256, logger: self.logger)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.initialiseAccepted(channel) }
            }
    }

    /// The read buffers of a handshake. They stay small, so that a stranger's flood cannot allocate bulk buffers.
    package static let strangersAllocator = AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 4096, maximum: 16384)

    /// Lets reads of a control connection grow with the traffic, up to the size for messages, once its peer is in a session. Reads are
    /// single, because input is passed on in turns.
    static func readForMessages(_ channel: any Channel) { self.read(channel, upTo: EarshotLimits.messagesRead) }

    /// Lets reads grow up to `most` bytes, one at a time.
    package static func read(_ channel: any Channel, upTo most: Int) {
        // Fails only for a channel that has ended.
        let options = channel.syncOptions
        try? options?.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 4096, initial: 16384, maximum: most))
        try? options?.setOption(.maxMessagesPerRead, value: 1)
    }

    func initialiseIncoming(_ channel: any Channel) throws {
        let id = LinkID.next()
        let unproven = self.unproven
        let isProven = NIOLoopBoundBox(false, eventLoop: channel.eventLoop)
        unproven.admit(id, from: channel.remoteAddress) { [weak channel] in
            guard let channel else { return }
            // The connection may have proven its key in the meantime. It is then no longer limited.
            channel.eventLoop.execute { if !isProven.value { channel.closeWithoutGoodbye() } }
        }
        channel.closeFuture.whenComplete { _ in unproven.remove(id) }
        // One deadline from the start, so that it bounds silent strangers as well as slow ones.
        let deadline = channel.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.handshakeTime)) { channel.closeWithoutGoodbye() }
        channel.closeFuture.whenComplete { _ in deadline.cancel() }
        let settings = self.settings(role: .responder, expected: nil, dialled: nil) { result in
            deadline.cancel()
            // A failed connection counts until it is closed, because its refusal may still be in transit.
            guard case .success = result else { return }
            isProven.value = true
            unproven.remove(id)
        }
        let contexts = self.contexts
        let examiner = self.chainExaminer
        let logger = self.logger
        let first = FirstByteHandler(preference: settings.hello.encryption) { context, transport in
            let pipeline = context.pipeline.syncOperations
            switch transport {
            case .tls:
                let validation = CertificateValidation(examiner)
                let tls = contexts.serverHandler(validation)
                try pipeline.addHandlers([self.handshakeGate(on: context.eventLoop), tls], position: .last)
                try pipeline.addHandler(
                    ConnectionHandler(
                        settings: settings, logger: logger, security: .tls(validation: validation) { [weak tls] _ in Self.key(of: tls) }),
                    position: .last)
            case .plaintext:
                try pipeline.addHandler(ConnectionHandler(settings: settings, logger: logger, security: .plaintext), position: .last)
            }
        }
        try channel.pipeline.syncOperations.addHandler(first)
    }

    static func key(of tls: NIOSSLHandler?) -> [UInt8]? {
        guard let certificate = tls?.peerCertificate else { return nil }
        return try? certificate.extractPublicKey().toSPKIBytes()
    }

    func settings(
        role: HandshakeRole, purpose: ConnectionHandler.Purpose = .control, expected: PeerID?, dialled: PeerAddress?,
        settled: @escaping @Sendable (Result<Void, EarshotError>) -> Void
    ) -> ConnectionHandler.Settings {
        let configuration = self.configuration
        let hello = Hello(
            versions: WireLimits.versions, publicKey: self.identity.publicKey, signatureScheme: self.identity.scheme,
            nonce: .random(count: WireLimits.nonceLength),
            serviceType: configuration.serviceType, displayName: configuration.displayName, encryption: configuration.encryption,
            extensions: purpose.helloExtensions)
        let identity = self.identity
        let failures = self.handshakeFailures
        return ConnectionHandler.Settings(
            role: role, purpose: purpose, tickets: self.tickets, hello: hello, expectedPeer: expected, dialledAddress: dialled,
            tlsPins: self.tlsPins, connectedPeers: self.connectedPeers, accounts: self.accounts, turns: self.turns,
            sign: { try identity.sign($0) }, emit: self.emit,
            settled: { result in
                if case .failure(let error) = result, !(error.underlying is ConnectedPeers.AlreadyConnected) { failures.count(error.code) }
                settled(result)
            })
    }

    /// Ends the current dials, and prevents new ones, because a stop must not wait for a peer that does not answer.
    func stopDialling() {
        self.lookup.stop()
        let dials = self.dials.withLock { dials in
            defer { dials = nil }
            return dials ?? [:]
        }
        for channel in dials.values { channel.close(mode: .all, promise: nil) }
    }

    func track(_ channel: any Channel, until settled: EventLoopFuture<Void>) throws {
        let id = LinkID.next()
        let isStopped = self.dials.withLock { dials in
            dials?[id] = channel
            return dials == nil
        }
        guard !isStopped else { throw ChannelError.ioOnClosedChannel }
        // Includes the end of the channel, because a channel that never connected does not settle.
        for future in [settled, channel.closeFuture] {
            future.whenComplete { _ in self.dials.withLock { dials in dials?[id] = nil } }
        }
    }

    /// Closes the incoming connections that have not proven a key.
    func closeUnproven() { self.unproven.closeAll() }

    func stopListening() async {
        let channel = self.listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        try? await channel?.close().get()
    }

    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { Self.reason($0.error) } ?? "the name \(error.host) does not resolve"
        case is ChannelError: "no answer"
        default: "\(error)"
        }
    }

    /// Returns the addresses at which others can reach this node: those of its interfaces, with loopback only if there is no other.
    func ownAddresses(port: UInt16) -> [String] {
        let devices = (try? System.enumerateDevices()) ?? []
        let addresses = devices.compactMap { device -> (text: String, isLoopback: Bool)? in
            guard let host = device.address?.ipAddress,
                let address = PeerAddress(host: host, interface: device.name, port: port)
            else { return nil }
            return (address.description, host == "::1" || host.hasPrefix("127."))
        }
        let others = addresses.filter { !$0.isLoopback }
        return (others.isEmpty ? addresses : others).map(\.text)
    }
}
