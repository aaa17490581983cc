internal import NIOCore
internal import NIOPosix
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// Connections that have left the event loop which accepted them, so that the server that did knows of them no more.
final class MovedConnections: Sendable {
    /// At a time, beside those that the server counts; the others stay where they are.
    static let limit = 128

    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        /// Places that are taken, also by those that are on their way.
        var count = 0
        var isStopping = false
    }

    private let state = Mutex(State())

    /// Takes a place for a connection that is to move, where there is one; ``leave()`` gives it back.
    func enter() -> Bool {
        self.state.withLock { state in
            guard state.count < Self.limit, !state.isStopping else { return false }
            state.count += 1
            return true
        }
    }

    func leave() { self.state.withLock { $0.count -= 1 } }

    /// A connection stands on a loop of its new one: it is told when the server stops.
    func add(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isStopping = self.state.withLock { state in
            state.channels[id] = channel
            return state.isStopping
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.channels[id] = nil } }
        if isStopping { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }

    /// What is being answered is the last.
    func stop() {
        let channels = self.state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }

    /// The connection's socket under another descriptor, for another channel, and what was read of it and is not dealt with.
    struct Socket: Sendable {
        let descriptor: NIOBSDSocket.Handle
        let unread: ByteBuffer

        /// Of a channel that has nothing left to write, and is closed right after this; on its event loop. `nil` where there is none.
        init?(of channel: any Channel, unread: ByteBuffer) {
            let descriptor = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                fcntl($0, F_DUPFD_CLOEXEC, 0)
            }
            guard let descriptor, descriptor >= 0 else { return nil }
            self.descriptor = descriptor
            self.unread = unread
        }

        /// A channel for it on another loop.
        func channel<Output: Sendable>(
            on group: any EventLoopGroup, _ setup: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
        ) async throws -> Output {
            try await ClientBootstrap(group: group).channelOption(.allowRemoteHalfClosure, value: true)
                .withConnectedSocket(self.descriptor, channelInitializer: setup)
        }
    }
}
