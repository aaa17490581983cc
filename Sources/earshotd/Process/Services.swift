internal import Earshot
internal import Glibc
internal import Logging
internal import NIOCore
internal import ServiceLifecycle

/// The node as a service: told to stop, it closes its connections in order and keeps the sessions.
struct NodeService: Service {
    let node: Node

    func run() async throws {
        await cancelWhenGracefulShutdown { await self.node.run() }
    }
}

/// Sees to it that stopping takes less than the 5 s that a service manager or a person waits.
///
/// Comes last in the group, so that it hears of the stop first. What is acknowledged is on disk: ending at once loses nothing but
/// goodbyes, and every kill point is tested anyway.
struct StopDeadline: Service {
    private static let limit: Int64 = 4500

    let serviceManager: ServiceManager
    /// It serves nothing else, so that it is not stuck behind what does not stop.
    let loop: any EventLoop
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        self.logger.info("stopping")
        self.serviceManager.stopping()
        self.loop.scheduleTask(in: .milliseconds(Self.limit)) { _exit(0) }
    }
}
