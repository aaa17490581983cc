internal import Earshot
internal import Glibc
internal import Logging
internal import NIOCore
internal import ServiceLifecycle

/// The node as a service: on shutdown, it closes its connections in order and keeps the sessions.
struct NodeService: Service {
    let node: Node

    func run() async throws {
        await cancelWhenGracefulShutdown { await self.node.run() }
    }
}

/// Ends the process if a shutdown takes longer than 4.5 s: a service manager or a user waits 5 s.
///
/// This service is the last in the group, so that it is the first to be notified of the shutdown. Acknowledged data is on disk: ending at
/// once loses only farewells, and tests cover every kill point.
struct StopDeadline: Service {
    private static let limit: Int64 = 4500

    let serviceManager: ServiceManager
    /// The loop serves nothing else, so that a part that does not stop cannot block it.
    let loop: any EventLoop
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        self.logger.info("stopping")
        self.serviceManager.stopping()
        self.loop.scheduleTask(in: .milliseconds(Self.limit)) { _exit(0) }
    }
}
