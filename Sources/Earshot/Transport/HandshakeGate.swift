package import NIOCore

/// In front of TLS until its handshake is over: bounds what a stranger makes TLS read, and has it take turns.
///
/// TLS takes 100 KiB of certificates, and reads every one of them, twice, before its callback can refuse them; they stay in memory as long
/// as the connection does. Measured in a debug build: 400 certificates, whose keys are points of P-224 in their compressed form, took 0.9 s
/// of an event loop, and any 300 of them 1 MB a connection. A peer's few certificates are a few thousand bytes.
package final class HandshakeGate: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private let turns: HandshakeTurns
    private var bytes = 0
    /// What waits for its turn.
    private var waiting: ByteBuffer?
    private var isReading = false

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
        // From the head of the pipeline, which this handler may have left by now.
        if !self.isReading { context.channel.pipeline.fireChannelReadComplete() }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.waiting = nil
        context.fireChannelInactive()
    }

    /// The handshake is over: everything passes from now on.
    static func open(_ pipeline: ChannelPipeline.SynchronousOperations) {
        guard let context = try? pipeline.context(handlerType: HandshakeGate.self) else { return }
        pipeline.removeHandler(context: context, promise: nil)
    }
}
