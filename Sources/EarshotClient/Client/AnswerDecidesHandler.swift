import NIOCore

/// Has the daemon's answer decide what became of a request: a write that fails is no failure of its own.
///
/// A daemon that refuses an upload answers before it has read all of the body, and the HTTP library closes the connection once it has that
/// answer. The parts of the body that still wait to be written fail then, and the library would report their failure in place of the answer.
/// Where no answer comes, the library reports that the connection was closed. Sits next to the socket.
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
