import NIOCore

/// Bounds the bytes of an answer, with its head and the interim answers before it. The parser bounds fields alone: reasons, extensions of
/// chunks and interim answers could be endless.
final class AnswerBound: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The answer is longer than the limit.
    struct Exceeded: Error {}

    private var left: Int

    init(limit: Int) { self.left = limit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let count = self.unwrapInboundIn(data).readableBytes
        guard count <= self.left else {
            self.left = 0
            context.fireErrorCaught(Exceeded())
            return
        }
        self.left -= count
        context.fireChannelRead(data)
    }
}
