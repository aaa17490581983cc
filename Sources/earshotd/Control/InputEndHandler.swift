internal import NIOCore

/// Tells that a client has ended its side of a connection, for an answer that goes on for as long as the client listens.
///
/// Hummingbird's own `consumeWithCancellationOnInboundClose` is not used: it ends the process where the connection ends before the
/// request's body does, or after the body has been read.
final class InputEndHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private let onEnd: @Sendable () -> Void

    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.onEnd() }
        context.fireUserInboundEventTriggered(event)
    }
}
