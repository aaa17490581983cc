internal import Earshot
internal import Glibc
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// The control API on its Unix socket, as a service. The socket is bound under the lock, and opened to the callers that the policy admits.
struct ControlServer: Service {
    /// The highest number of connections. It suffices for event streams of many programs, and is well below the usual limit on descriptors.
    static let connectionLimit = 1_200

    let socket: ControlSocket
    let policy: CallerPolicy
    let api: ControlAPIServices
    let logger: Logger
    /// Called once the socket answers.
    let onReady: @Sendable () async -> Void

    func run() async throws {
        let moved = MovedConnections()
        let channel = ControlChannel(api: self.api, policy: self.policy, moved: moved)
        // Hummingbird's message about the start would repeat the daemon's own.
        var quietLogger = self.logger
        quietLogger.logLevel = max(.notice, self.logger.logLevel)
        let server = channel.server(
            configuration: ServerConfiguration(
                address: .unixDomainSocket(path: self.socket.path), backlog: 1024,
                availableConnectionsDelegate: .maximum(Self.connectionLimit, logger: quietLogger)),
            onServerRunning: { listener in
                await Self.backOff(listener, logger: self.logger)
                do throws(SocketError) {
                    try self.socket.open(to: self.policy.group)
                } catch {
                    self.logger.error("the control socket stays the daemon's own", metadata: ["error": "\(error)"])
                }
                await self.onReady()
            },
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: quietLogger)
        defer { self.socket.remove() }
        let readers = self.api.readers
        let events = self.api.node.events
        // Runs until the server has ended.
        async let _: Void = Self.watch(readers, of: events)
        try await withGracefulShutdownHandler {
            try await server.run()
        } onGracefulShutdown: {
            moved.stop()
            readers.stop()
            events.wakeReaders()
            self.api.node.endStreams()
        }
    }

    /// Makes the listener pause if descriptors run out. The added handler comes before NIO's own, which only defers reads, so that the
    /// listener would query the kernel in a loop.
    private static func backOff(_ listener: any Channel, logger: Logger) async {
        do {
            try await listener.eventLoop.submit {
                try listener.pipeline.syncOperations.addHandler(
                    AcceptBackOffHandler(delay: TimeAmount(EarshotLimits.acceptBackOff), logger: logger), position: .first)
            }.get()
        } catch {
            logger.warning("the control socket does not pause where descriptors run out", metadata: ["error": "\(error)"])
        }
    }

    /// Drops stalled readers and sends heartbeats to the others. Without readers no timer runs, so that an idle daemon sleeps.
    private static func watch(_ readers: EventReaders, of events: EventLog) async {
        for await _ in readers.beginnings {
            var sinceHeartbeat = Duration.zero
            while readers.counts.readers > 0 {
                guard (try? await TimerClock().sleep(for: EventReaders.sweepInterval)) != nil else { return }
                readers.dropStalled()
                sinceHeartbeat += EventReaders.sweepInterval
                guard sinceHeartbeat >= EventReaders.heartbeatInterval else { continue }
                sinceHeartbeat = .zero
                events.wakeReaders()
            }
        }
    }
}
