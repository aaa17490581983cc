internal import NIOCore

/// Work that is done for a client, and only for as long as it is there.
enum ClientPresence {
    /// Does `operation`, and cancels it when the connection ends: while a body waits for its receiver nothing is read from the client, so
    /// that its end would go unnoticed.
    static func required<Value: Sendable>(
        on channel: any Channel, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (open, closer) = AsyncStream<Never>.makeStream()
        // And not the channel's future of its end, which would keep what each of a connection's requests has asked of it.
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

/// Tells that a connection has ended, or that it was asked to tell that no more.
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
