internal import NIOCore

/// Delays the end of a connection until the kernel has taken all of its answers.
///
/// NIO closes the sending half of a connection after all pending writes. But if the client has closed its own half before, NIO closes the
/// whole connection immediately, and a slow reader loses the unwritten bytes. While the server stops, an answer has ``time`` to be sent.
/// The handler is the first of the pipeline, next to the socket.
final class OrderlyCloseHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The time in which a client may read its answer while the server stops.
    static let time: TimeAmount = .seconds(1)
    /// The time in which a client may read its answer while the server runs, if the answer was cut off or its task has ended.
    static let abandonedTime: TimeAmount = .seconds(60)

    /// The requests to close that wait for pending writes, in order; `nil` if there are none.
    private var waiting: [(mode: CloseMode, promise: EventLoopPromise<Void>?)]?
    private var isStopping = false
    private var limit: Scheduled<Void>?

    /// Waits until the kernel has taken all bytes that were written to a client's channel.
    static func flush(_ channel: any Channel) async throws {
        try await channel.eventLoop.flatSubmit {
            let written = channel.eventLoop.makePromise(of: Void.self)
            do {
                // An empty write, in front of all encoders, completes after all earlier writes.
                let context = try channel.pipeline.syncOperations.context(handlerType: Self.self)
                context.writeAndFlush(NIOAny(ByteBuffer()), promise: written)
            } catch {
                written.fail(error)
            }
            return written.futureResult
        }.get()
    }

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
            // A cancelled task closes the input.
            context.close(mode: mode, promise: promise)
            return self.stop(context: context)
        }
        guard self.waiting == nil else {
            self.waiting?.append((mode, promise))
            if case .all = mode { self.setLimit(self.isStopping ? Self.time : Self.abandonedTime, context: context) }
            return
        }
        // If the connection is cut off while the server runs, the bytes that the client has not read are dropped.
        if case .all = mode, !self.isStopping { return context.close(mode: mode, promise: promise) }
        self.waiting = [(mode, promise)]
        if self.isStopping { self.setLimit(Self.time, context: context) }
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.closeNow(context: context)
        }
        // An empty write completes after all earlier writes.
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
