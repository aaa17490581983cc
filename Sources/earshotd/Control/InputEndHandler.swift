internal import Glibc
internal import NIOCore
internal import Synchronization

/// Reports that a client has closed its side of a connection, for an answer that lasts for as long as the client listens.
///
/// Hummingbird's own `consumeWithCancellationOnInboundClose` is not used: it ends the process if the connection ends before the request's
/// body does, or after the body has been read.
final class InputEndHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private let onEnd: @Sendable () -> Void
    private let wasReset = Mutex(false)

    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    /// Closes this side's half of the connection, and waits up to `time` for the client to close its half.
    /// - Throws: if the client disconnected before it read everything.
    func clientEnds(_ channel: any Channel, within time: TimeAmount) async throws {
        let ended = channel.eventLoop.makePromise(of: Void.self)
        let limit = channel.eventLoop.scheduleTask(in: time) { ended.succeed() }
        channel.closeFuture.whenComplete { _ in ended.succeed() }
        channel.close(mode: .output, promise: nil)
        try await ended.futureResult.get()
        limit.cancel()
        guard !self.wasReset.withLock({ $0 }) else { throw ChannelError.ioOnClosedChannel }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if (error as? IOError)?.errnoCode == ECONNRESET { self.wasReset.withLock { $0 = true } }
        context.fireErrorCaught(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.onEnd() }
        context.fireUserInboundEventTriggered(event)
    }
}
