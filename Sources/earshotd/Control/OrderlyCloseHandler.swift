internal import NIOCore

/// Has a connection end only once the kernel has all of its answers.
///
/// NIO ends the sending half after what waits to be written, but the whole of a connection at once where its client has ended its own half
/// before: what a slower reader had not taken yet would be lost. While the server stops, an answer has ``time`` to go out. Sits in front of
/// everything, next to the socket.
final class OrderlyCloseHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How long a client may take to read its answer once the server stops.
    static let time: TimeAmount = .seconds(1)
    /// How long it may take while the server serves, where its answer broke off or nobody waits for it here any more.
    static let abandonedTime: TimeAmount = .seconds(60)

    /// Closings that wait for what is being written, in the order in which they were asked for; `nil` while none does.
    private var waiting: [(mode: CloseMode, promise: EventLoopPromise<Void>?)]?
    private var isStopping = false
    private var limit: Scheduled<Void>?

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { self.stop(context: context) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.limit?.cancel()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.limit?.cancel() }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .input = mode {
            // By a task that was cancelled.
            context.close(mode: mode, promise: promise)
            return self.stop(context: context)
        }
        guard self.waiting == nil else {
            self.waiting?.append((mode, promise))
            if case .all = mode { self.setLimit(self.isStopping ? Self.time : Self.abandonedTime, context: context) }
            return
        }
        // A connection that is cut off while it serves is to lose what its client does not read.
        if case .all = mode, !self.isStopping { return context.close(mode: mode, promise: promise) }
        self.waiting = [(mode, promise)]
        if self.isStopping { self.setLimit(Self.time, context: context) }
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.closeNow(context: context)
        }
        // Is written when everything before it was.
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: written)
    }

    private func closeNow(context: ChannelHandlerContext) {
        let closings = self.waiting ?? []
        self.waiting = nil
        for (mode, promise) in closings { context.close(mode: mode, promise: promise) }
    }

    private func stop(context: ChannelHandlerContext) {
        guard !self.isStopping else { return }
        self.isStopping = true
        self.limit?.cancel()
        self.limit = nil
        if self.waiting != nil { self.setLimit(Self.time, context: context) }
    }

    private func setLimit(_ time: TimeAmount, context: ChannelHandlerContext) {
        guard self.limit == nil, context.channel.isActive else { return }
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.limit = context.eventLoop.scheduleTask(in: time) {
            let (this, context) = loopBound.value
            this.closeNow(context: context)
            context.close(promise: nil)
        }
    }
}
