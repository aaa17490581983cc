import Earshot
import EarshotCore
import EarshotWire
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The HTTPS server: accepts connections from this machine's networks, and passes those with a request to ``run(_:as:)``.
///
/// A connection begins with a first byte of TLS. The handshake takes turns with others (`HandshakeTurns`), because it costs a signature of
/// RSA. Any other first byte, such as that of plain HTTP, closes the connection.
final class DeviceServer: Sendable {
    private let tls: DeviceTLS
    /// This machine's own id, whose requests are not reported.
    private let own: PeerID
    private let group: any EventLoopGroup
    private let logger: Logger
    private let links: CurrentLinks
    private let listener = Mutex<(any Channel)?>(nil)
    private let budget = BodyBudget()
    private let accepted: AsyncStream<DeviceConnection>
    private let continuation: AsyncStream<DeviceConnection>.Continuation
    let connections = DeviceConnections()

    init(tls: DeviceTLS, own: PeerID, links: CurrentLinks, group: any EventLoopGroup, logger: Logger) {
        self.tls = tls
        self.own = own
        self.links = links
        self.group = group
        self.logger = logger
        (self.accepted, self.continuation) = AsyncStream.makeStream()
    }

    // MARK: Listening

    /// Binds `port`, or any free one if it is taken, on every address, and returns the port.
    func listen(port: UInt16) async throws(EarshotError) -> UInt16 {
        do {
            return try await self.bind(port: Int(port))
        } catch {
            guard port != 0, (error as? IOError)?.errnoCode == EADDRINUSE else { throw Self.cannotListen(port, error) }
        }
        do {
            let other = try await self.bind(port: 0)
            self.logger.notice("the LocalSend port is taken; another one is used", metadata: ["taken": "\(port)", "port": "\(other)"])
            return other
        } catch {
            throw Self.cannotListen(0, error)
        }
    }

    private static func cannotListen(_ port: UInt16, _ error: any Error) -> EarshotError {
        let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
        return EarshotError(.unavailable, "cannot listen for LocalSend devices on TCP port \(port): \(reason)", underlying: error)
    }

    private func bind(port: Int) async throws -> UInt16 {
        let channel = try await self.bootstrap().bindEverywhere(port: port)
        self.listener.withLock { $0 = channel }
        return UInt16(clamping: channel.localAddress?.port ?? port)
    }

    private func bootstrap() -> ServerBootstrap {
        ServerBootstrap.forStrangers(on: self.group, backlog: 64, logger: self.logger)
            // One read at a time, so that the handshake's bytes are bounded however much of a request follows them.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.initialise(channel) }
            }
    }

    // MARK: Connections

    /// The connection is closed because it has no place, or does not come from this machine's networks.
    private struct NoPlace: Error {}

    private func initialise(_ channel: any Channel) throws {
        guard let remote = channel.remoteAddress, let address = PeerAddress(remote: remote), self.links.permit(address),
            let id = self.connections.admit(
                from: UnprovenConnections.origin(remote) ?? [],
                close: { [weak channel] in channel?.eventLoop.execute { [weak channel] in channel?.closeWithoutGoodbye() } })
        else { throw NoPlace() }
        let connections = self.connections
        let accepted = self.continuation
        let (requests, continuation) = AsyncStream<DeviceRequest>.makeStream()
        channel.closeFuture.whenComplete { _ in
            connections.remove(id)
            continuation.finish()
        }
        try channel.probeSilence()
        var isPassedOn = false
        let handler = RequestHandler(address: address, use: { connections.use(id, $0) }) { [unowned channel] request in
            continuation.yield(request)
            guard !isPassedOn else { return }
            isPassedOn = true
            accepted.yield(Self.connection(channel, requests))
        }
        handler.start(channel)
        let tls = self.tls
        let first = FirstByteHandler(preference: .optional) { context, transport in
            guard transport == .tls else { throw NoPlace() }
            let pipeline = context.pipeline.syncOperations
            try pipeline.addHandlers([tls.gate(on: context.eventLoop), tls.serverHandler()], position: .last)
            try pipeline.addHandler(ByteToMessageHandler(Self.decoder()), position: .last)
            try pipeline.addHandlers([HTTPResponseEncoder(), handler], position: .last)
        }
        channel.closeFuture.assumeIsolated().whenComplete { _ in handler.end() }
        try channel.pipeline.syncOperations.addHandler(first)
    }

    private static func decoder() -> HTTPRequestDecoder {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = LocalSendLimits.headBytes
        limits.maxHeaderListSize = LocalSendLimits.headBytes
        limits.maxHeaderFieldCount = LocalSendLimits.headFields
        return HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
    }

    private static func connection(_ channel: any Channel, _ requests: AsyncStream<DeviceRequest>) -> DeviceConnection {
        DeviceConnection(channel: channel, requests: requests) { answer in
            channel.eventLoop.execute {
                // The handler is gone if the connection is closed.
                try? channel.pipeline.syncOperations.handler(type: RequestHandler.self).answer(answer)
            }
        }
    }

    /// Answers requests until the task is cancelled, and closes all connections.
    func run(_ node: any DeviceRequests, as description: @escaping @Sendable (String) -> InfoMessage) async {
        await withDiscardingTaskGroup { group in
            for await connection in self.accepted {
                group.addTask { await connection.serve(node, own: self.own, as: description, budget: self.budget) }
            }
            await self.stop()
        }
    }

    /// Stops listening, and closes all connections.
    func stop() async {
        let channel = self.listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        try? await channel?.close().get()
        self.connections.stop()
        self.continuation.finish()
    }
}
