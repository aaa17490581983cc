package import NIOCore

/// Precedes TLS until its handshake is over. Bounds the input that a stranger can make TLS read, and makes it take turns.
///
/// TLS accepts 100 KiB of certificates, and parses each of them twice before its callback can refuse them. They stay in memory as long as
/// the connection does. In a debug build, 400 certificates with keys that are compressed P-224 points took 0.9 s of an event loop, and any
/// 300 of them took 1 MB per connection. A peer's few certificates are a few thousand bytes.
///
/// While input waits for its turn, the socket is not read. A client may send its first request, which can be long, right after the last
/// message of its handshake.
package final class HandshakeGate: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer

    private let turns: HandshakeTurns
    private var bytes = 0
    /// Input that waits for its turn.
    private var waiting: ByteBuffer?
    private var isReading = false
    /// Whether a read waits for the turn.
    private var wantsRead = false

    package init(turns: HandshakeTurns) {
        self.turns = turns
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = self.unwrapInboundIn(data)
        self.bytes += buffer.readableBytes
        guard self.bytes <= EarshotLimits.handshakeBytes else {
            self.waiting = nil
            context.close(promise: nil)
            return
        }
        guard self.waiting == nil else {
            self.waiting?.writeBuffer(&buffer)
            return
        }
        self.waiting = buffer
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.isReading = true
        self.turns.take {
            let (this, context) = loopBound.value
            this.pass(context: context)
        }
        self.isReading = false
    }

    private func pass(context: ChannelHandlerContext) {
        guard let buffer = self.waiting else { return }
        self.waiting = nil
        context.fireChannelRead(self.wrapInboundOut(buffer))
        // Both start at an end of the pipeline, because this handler may have been removed by now.
        if !self.isReading { context.channel.pipeline.fireChannelReadComplete() }
        guard self.wantsRead else { return }
        self.wantsRead = false
        context.channel.read()
    }

    package func read(context: ChannelHandlerContext) {
        if self.waiting == nil {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.waiting = nil
        context.fireChannelInactive()
    }

    /// Removes the gate when the handshake is over. All later input passes.
    package static func open(_ pipeline: ChannelPipeline.SynchronousOperations) {
        guard let context = try? pipeline.context(handlerType: HandshakeGate.self) else { return }
        pipeline.removeHandler(context: context, promise: nil)
    }
}
