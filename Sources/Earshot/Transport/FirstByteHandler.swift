import EarshotWire
package import NIOCore

/// Tells TLS from plaintext by the first byte that comes in (design section 3), puts what belongs there in front of the
/// connection's handler, and leaves.
package final class FirstByteHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let addTLS: (ChannelHandlerContext) throws -> Void
    private var hasSeenFirstByte = false

    /// `addTLS` adds the server's side of TLS, and the connection's handler, behind this one.
    package init(addTLS: @escaping (ChannelHandlerContext) throws -> Void) {
        self.addTLS = addTLS
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        guard !self.hasSeenFirstByte, let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else {
            context.fireChannelRead(data)
            return
        }
        self.hasSeenFirstByte = true
        guard first == WireLimits.tlsHandshakeByte else {
            self.refuse(first, context: context)
            return
        }
        do {
            try self.addTLS(context)
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }

    /// A peer of ours that would speak plaintext is told why not; anything else is not worth a word.
    private func refuse(_ first: UInt8, context: ChannelHandlerContext) {
        if first == WireLimits.preamble.first {
            var answer = context.channel.allocator.buffer(bytes: WireLimits.preamble)
            let refusal = Refusal(code: .encryptionMismatch, explanation: "this peer speaks TLS only")
            if (try? FrameEncoder.encode(.refusal(refusal), into: &answer)) != nil {
                context.writeAndFlush(self.wrapOutboundOut(answer), promise: nil)
            }
        }
        context.close(promise: nil)
    }
}
