internal import NIOCore

/// Examines the first bytes of a connection. A connection that begins with a small message moves to the node's event loop. Any other
/// connection stays on its loop.
final class ConnectionStartHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let moved: MovedConnections
    /// The socket of a connection that moves; `nil` if the connection stays.
    private let decision: EventLoopPromise<MovedConnections.Socket?>
    private var bytes = ByteBuffer()
    private var isDecided = false

    init(moved: MovedConnections, decision: EventLoopPromise<MovedConnections.Socket?>) {
        self.moved = moved
        self.decision = decision
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard !self.isDecided else { return context.fireChannelRead(data) }
        self.bytes.writeBuffer(&bytes)
        switch self.bytes.withUnsafeReadableBytes(PlainMessageRequest.find) {
        case .incomplete: return
        case .other: self.stay(context: context)
        case .message: self.move(context: context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        self.stay(context: context) { context.fireUserInboundEventTriggered(event) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.stay(context: context) { context.fireErrorCaught(error) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.stay(context: context) { context.fireChannelInactive() }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.decide(nil) }

    private func decide(_ socket: MovedConnections.Socket?) {
        guard !self.isDecided else { return }
        self.isDecided = true
        self.decision.succeed(socket)
    }

    /// Keeps the connection on its loop: passes on the held bytes and the event, and removes the handler.
    private func stay(context: ChannelHandlerContext, _ happened: () -> Void = {}) {
        guard !self.isDecided else { return happened() }
        self.decide(nil)
        if self.bytes.readableBytes > 0 {
            context.fireChannelRead(self.wrapInboundOut(self.bytes))
            context.fireChannelReadComplete()
            self.bytes = ByteBuffer()
        }
        // This comes before the removal, after which the handler has no successor in the pipeline.
        happened()
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private func move(context: ChannelHandlerContext) {
        guard self.moved.enter() else { return self.stay(context: context) }
        guard let socket = MovedConnections.Socket(of: context.channel, unread: self.bytes) else {
            self.moved.leave()
            return self.stay(context: context)
        }
        self.decide(socket)
        context.close(promise: nil)
    }
}

/// Passes on the bytes that another channel has read from the same socket, before any bytes that this channel reads.
final class UnreadBytesHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let unread: ByteBuffer

    init(_ unread: ByteBuffer) { self.unread = unread }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        if self.unread.readableBytes > 0 {
            context.fireChannelRead(self.wrapInboundOut(self.unread))
            context.fireChannelReadComplete()
        }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }
}
