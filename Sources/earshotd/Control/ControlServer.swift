internal import Earshot
internal import Glibc
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// The control API on its Unix socket, as a service: bound under the lock, open to whom the policy admits, closed in order.
struct ControlServer: Service {
    /// Connections at a time: event streams of many programs, and room to spare below the usual limit of descriptors.
    static let connectionLimit = 1_200

    let socket: ControlSocket
    let policy: CallerPolicy
    let api: ControlAPIServices
    let logger: Logger
    /// Called once the socket answers.
    let onReady: @Sendable () async -> Void

    func run() async throws {
        let moved = MovedConnections()
        let channel = ControlChannel(
            responder: ControlRouter.build(ControlRouter.routes(self.api)).buildResponder(), policy: self.policy,
            requests: self.api.requests, node: self.api.node, moved: moved)
        // Hummingbird's own notice of the start repeats ours.
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
        // Until the server has ended.
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

    /// Has the listener pause where descriptors run out, before NIO's own handler hears of it: that one holds reads back, which leaves the
    /// listener asking the kernel again and again.
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

    /// Drops readers that have stalled and sends the others signs of life, for as long as there are any: an idle daemon sleeps.
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
