internal import NIOCore
internal import NIOPosix
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#endif

/// Connections that have moved off the event loop that accepted them. Hummingbird's server no longer tracks them.
final class MovedConnections: Sendable {
    /// The highest number of moved connections, in addition to those that the server counts. Further connections do not move.
    static let limit = 128

    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        /// The number of taken places, including those of connections that are still moving.
        var count = 0
        var isStopping = false
    }

    private let state = Mutex(State())

    /// Takes a place for a connection that is about to move. Returns `false` if none is free, or if the server stops. ``leave()`` frees the
    /// place.
    func enter() -> Bool {
        self.state.withLock { state in
            guard state.count < Self.limit, !state.isStopping else { return false }
            state.count += 1
            return true
        }
    }

    func leave() { self.state.withLock { $0.count -= 1 } }

    /// Adds a connection that has arrived on its new event loop. It receives the event that the server stops.
    func add(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isStopping = self.state.withLock { state in
            state.channels[id] = channel
            return state.isStopping
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.channels[id] = nil } }
        if isStopping { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }

    /// Tells all connections to close after the requests that are being answered.
    func stop() {
        let channels = self.state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }

    /// A duplicate descriptor of the connection's socket, for another channel, with the received bytes that are not processed yet.
    struct Socket: Sendable {
        let descriptor: NIOBSDSocket.Handle
        let unread: ByteBuffer

        /// Duplicates the descriptor of a channel that has nothing left to write and is closed directly afterwards. Call this on the
        /// channel's event loop. Returns `nil` if there is no descriptor.
        init?(of channel: any Channel, unread: ByteBuffer) {
            let descriptor = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                fcntl($0, F_DUPFD_CLOEXEC, 0)
            }
            guard let descriptor, descriptor >= 0 else { return nil }
            self.descriptor = descriptor
            self.unread = unread
        }

        /// Returns a channel for the socket on another event loop.
        func channel<Output: Sendable>(
            on group: any EventLoopGroup, _ setup: @escaping @Sendable (any Channel) -> EventLoopFuture<Output>
        ) async throws -> Output {
            try await ClientBootstrap(group: group).channelOption(.allowRemoteHalfClosure, value: true)
                .withConnectedSocket(self.descriptor, channelInitializer: setup)
        }
    }
}
