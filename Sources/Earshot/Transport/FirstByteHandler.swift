package import EarshotWire
package import NIOCore

/// Detects TLS or plaintext from the first received byte ("First byte, TLS, plaintext" in EarshotWire's Handshake.md), inserts the
/// handlers for it before the connection's handler, and removes itself.
///
/// An Earshot peer whose transport this node's preference excludes is refused in plaintext, whatever transport it uses, because it cannot
/// know the preference earlier. Any other client gets no answer.
package final class FirstByteHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let preference: EncryptionPreference
    private let add: (ChannelHandlerContext, TransportKind) throws -> Void
    private var hasSeenFirstByte = false
    private var hasRefused = false

    /// Creates the handler. `add` adds the handlers of the transport, and the connection's handler, behind this one.
    package init(preference: EncryptionPreference, add: @escaping (ChannelHandlerContext, TransportKind) throws -> Void) {
        self.preference = preference
        self.add = add
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Input after a refused first byte is read and dropped. Closing with unread input would reset the connection before the peer has
        // read the refusal.
        guard !self.hasRefused else { return }
        let buffer = self.unwrapInboundIn(data)
        guard !self.hasSeenFirstByte, let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else {
            context.fireChannelRead(data)
            return
        }
        self.hasSeenFirstByte = true
        let transport: TransportKind
        switch first {
        case WireLimits.tlsHandshakeByte: transport = .tls
        case WireLimits.preamble.first: transport = .plaintext
        default:
            context.close(promise: nil)
            return
        }
        guard self.preference.permits(transport) else {
            self.refuse(transport, context: context)
            return
        }
        do {
            try self.add(context, transport)
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            context.close(promise: nil)
        }
    }

    /// Sends the reason, and closes when the other side has had time to read it.
    private func refuse(_ transport: TransportKind, context: ChannelHandlerContext) {
        self.hasRefused = true
        var answer = context.channel.allocator.buffer(bytes: WireLimits.preamble)
        let refusal = Refusal(
            code: .encryptionMismatch, explanation: transport == .tls ? "this peer speaks plaintext only" : "this peer speaks TLS only")
        guard (try? FrameEncoder.encode(.refusal(refusal), into: &answer)) != nil else {
            context.close(promise: nil)
            return
        }
        let channel = context.channel
        context.writeAndFlush(self.wrapOutboundOut(answer)).whenComplete { _ in channel.close(mode: .output, promise: nil) }
        context.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.closingTime)) { channel.close(mode: .all, promise: nil) }
    }
}
