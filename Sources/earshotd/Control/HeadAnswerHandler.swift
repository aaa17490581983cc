internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Ends the answer to a HEAD with its head, whatever that says of a body (RFC 9112 section 6.3).
///
/// NIO's encoder does not know what was asked. Where a length is not known it writes an empty body's last chunk, which the client would
/// take for the beginning of the next answer.
final class HeadAnswerHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Of each request whose answer has not ended, in their order, whether it is a HEAD.
    private var unanswered = CircularBuffer<Bool>()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = self.unwrapInboundIn(data) { self.unanswered.append(head.method == .head) }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = self.unwrapOutboundIn(data), self.unanswered.popFirst() == true else {
            return context.write(data, promise: promise)
        }
        // Nothing, which is written when the head was.
        context.write(self.wrapOutboundOut(.body(ByteBuffer())), promise: promise)
    }
}
