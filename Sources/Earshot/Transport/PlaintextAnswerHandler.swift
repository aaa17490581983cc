package import EarshotWire
package import NIOCore

/// A listener's plaintext refusal of this node's TLS. It is not signed. Its only effect can be that the dialler tries plaintext, where the
/// signed preferences show whether it was genuine.
package struct PlaintextRefusal: Error, Hashable, CustomStringConvertible {
    package let refusal: Refusal

    package var description: String { "the listener refused TLS in plaintext (\(self.refusal.code.name))" }
}

/// Precedes the dialler's TLS until the first bytes have arrived. A listener that speaks only plaintext answers a TLS hello with Earshot's
/// preamble and a refusal ("First byte, TLS, plaintext" in EarshotWire's Handshake.md). TLS itself would only report that as malformed.
package final class PlaintextAnswerHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer

    private var isPlaintext = false
    private var isOver = false
    private var preamble = PreambleDecoder()
    private var hasPreamble = false
    private var decoder = FrameDecoder()

    package init() {}

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Input after the answer is dropped. Closing takes a moment, in which it must not accumulate.
        guard !self.isOver else { return }
        var buffer = self.unwrapInboundIn(data)
        guard self.isPlaintext || buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) == WireLimits.preamble.first else {
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            return
        }
        self.isPlaintext = true
        do throws(WireError) {
            if !self.hasPreamble { self.hasPreamble = try self.preamble.consume(&buffer) }
            guard self.hasPreamble else { return }
            self.decoder.feed(buffer)
            guard let frame = try self.decoder.next() else { return }
            guard case .refusal(let refusal) = frame else {
                throw .outOfOrder(frame.type, why: "a listener answers TLS with TLS or with a refusal")
            }
            self.isOver = true
            context.fireUserInboundEventTriggered(PlaintextRefusal(refusal: refusal))
        } catch {
            self.isOver = true
            context.fireErrorCaught(error)
        }
    }
}
