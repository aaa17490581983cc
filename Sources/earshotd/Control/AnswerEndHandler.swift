internal import NIOCore
internal import NIOHTTPTypes

/// Tells that the socket has taken the end of an answer, and so all of it: the writer that Hummingbird gives only says when there is room
/// for more.
///
/// A client that has everything closes its connection at once. That is seen on the same event loop, after this: at the
/// connection's end it is known for sure whether the answer was whole.
final class AnswerEndHandler: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let taken: EventLoopPromise<Void>

    private init(_ taken: EventLoopPromise<Void>) { self.taken = taken }

    /// Succeeds when the socket has taken the end of the answer that follows; fails where the connection ends before.
    static func add(to channel: any Channel) async throws -> EventLoopFuture<Void> {
        let taken = channel.eventLoop.makePromise(of: Void.self)
        channel.closeFuture.whenComplete { _ in taken.fail(ChannelError.ioOnClosedChannel) }
        try await channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            // Where the parts of answers are still parts.
            let neighbour = try pipeline.handler(type: IdleConnectionHandler.self)
            try pipeline.addHandler(AnswerEndHandler(taken), position: .after(neighbour))
        }.get()
        return taken.futureResult
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = self.unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        let written = promise ?? context.eventLoop.makePromise()
        written.futureResult.cascade(to: self.taken)
        context.write(data, promise: written)
    }
}
