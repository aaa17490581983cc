import NIOCore

/// Hides failed writes, so that the daemon's answer determines the outcome of a request.
///
/// A daemon that refuses an upload answers before it has read the whole body, and the HTTP library closes the connection once it has that
/// answer. The parts of the body that are still unwritten then fail, and the library would report that failure instead of the answer. If no
/// answer arrives, the library reports that the connection was closed. The handler is next to the socket.
final class AnswerDecidesHandler: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard let promise else { return context.write(data, promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in promise.succeed() }
        context.write(data, promise: written)
    }
}
