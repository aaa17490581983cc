internal import NIOCore

/// Tells when everything that was written to a connection before has been taken by its socket: the writer that Hummingbird gives only
/// says when there is room for more.
///
/// It has to be the pipeline's first handler, next to the socket.
final class OutputBarrier: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Event { case wait }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is Event else { return context.triggerUserOutboundEvent(event, promise: promise) }
        // Writes are answered in their order, an empty one like any other.
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: promise)
    }

    /// Returns when the socket has taken everything.
    /// - Throws: where the connection ends before.
    static func wait(on channel: any Channel) async throws {
        try await channel.triggerUserOutboundEvent(Event.wait).get()
    }
}
