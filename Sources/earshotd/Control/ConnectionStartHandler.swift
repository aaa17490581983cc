internal import NIOCore

/// Looks at the first bytes of a connection, and has one that begins with a small message move to the node's event loop; all others go on
/// where they are.
final class ConnectionStartHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let moved: MovedConnections
    /// The socket of a connection that moves; `nil` for one that stays.
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

    /// Lets everything through from now on: what has been read, and what has happened.
    private func stay(context: ChannelHandlerContext, _ happened: () -> Void = {}) {
        guard !self.isDecided else { return happened() }
        self.decide(nil)
        if self.bytes.readableBytes > 0 {
            context.fireChannelRead(self.wrapInboundOut(self.bytes))
            context.fireChannelReadComplete()
            self.bytes = ByteBuffer()
        }
        // Before this is removed: afterwards there is nobody behind it.
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

/// Hands on what another channel had read of the same socket, before anything that is read from now on.
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
