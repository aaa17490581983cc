internal import NIOCore

/// Work for a client that ends when the client disconnects.
enum ClientPresence {
    /// Runs `operation`, and cancels it when the connection ends. While a body waits for its receiver, the daemon reads nothing from the
    /// client, so the operation itself would not notice the end.
    static func required<Value: Sendable>(
        on channel: any Channel, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (open, closer) = AsyncStream<Never>.makeStream()
        // The channel's `closeFuture` would keep a callback for each request of the connection until the connection ends.
        let handler = ChannelEndHandler { closer.finish() }
        do {
            try await channel.pipeline.addHandler(handler)
        } catch {
            throw CancellationError()
        }
        defer { channel.pipeline.removeHandler(handler, promise: nil) }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                for await _ in open {}
                return nil
            }
            var result: Value?
            while let next = try await group.next() {
                result = next ?? result
                group.cancelAll()
            }
            guard let result else { throw CancellationError() }
            return result
        }
    }
}

/// Calls `onEnd` when the connection ends, or when the handler is removed.
private final class ChannelEndHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private let onEnd: @Sendable () -> Void

    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    func channelInactive(context: ChannelHandlerContext) {
        self.onEnd()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.onEnd() }
}
