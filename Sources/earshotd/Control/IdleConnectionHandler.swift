internal import NIOCore
internal import NIOHTTPTypes

/// Closes a client's connection that has had no request for a while.
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
        if case .end = self.unwrapOutboundIn(data) {
            self.requests -= 1
            if self.requests <= 0 { self.wait(context: context) }
        }
        context.write(data, promise: promise)
    }

    private func wait(context: ChannelHandlerContext) {
        self.timeout?.cancel()
        let channel = context.channel
        self.timeout = context.eventLoop.scheduleTask(in: self.time) { channel.close(promise: nil) }
    }
}
