internal import NIOCore
internal import NIOHTTPTypes

/// Closes a client's connection that has had no request for a while. An answer that its client takes its time to read is not over.
///
/// Hummingbird's own timeout also ends a connection whose request's body pauses, and a stream pauses for as long as its writer or its
/// reader likes.
final class IdleConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart

    private let time: TimeAmount
    private var requests = 0
    private var timeout: Scheduled<Void>?

    init(time: TimeAmount) { self.time = time }

    func handlerAdded(context: ChannelHandlerContext) { self.wait(context: context) }

    /// It is added before its channel is one that may be closed.
    func channelActive(context: ChannelHandlerContext) {
        self.wait(context: context)
        context.fireChannelActive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.timeout?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        self.timeout?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head = self.unwrapInboundIn(data) {
            self.requests += 1
            self.timeout?.cancel()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = self.unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let written = promise ?? context.eventLoop.makePromise()
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.requests -= 1
            if this.requests <= 0 { this.wait(context: context) }
        }
        context.write(data, promise: written)
    }

    private func wait(context: ChannelHandlerContext) {
        self.timeout?.cancel()
        guard context.channel.isActive else { return }
        let channel = context.channel
        self.timeout = context.eventLoop.scheduleTask(in: self.time) { channel.close(promise: nil) }
    }
}
