package import EarshotWire
package import NIOCore

/// Tells TLS from plaintext by the first byte that comes in ("First byte, TLS, plaintext" in EarshotWire's Handshake.md), puts what
/// belongs there in front of the connection's handler, and leaves.
///
/// A peer of ours that comes in the way that this node's preference excludes is told so in plaintext, whatever it speaks: it cannot
/// know better before. Anything else is not worth a word.
package final class FirstByteHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let preference: EncryptionPreference
    private let add: (ChannelHandlerContext, TransportKind) throws -> Void
    private var hasSeenFirstByte = false
    private var hasRefused = false

    /// `add` adds what the transport needs, and the connection's handler, behind this one.
    package init(preference: EncryptionPreference, add: @escaping (ChannelHandlerContext, TransportKind) throws -> Void) {
        self.preference = preference
        self.add = add
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What follows on a refused first byte is read, and let go: closing on it would reset the connection under the refusal.
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

    /// Says why not, and closes once the other side has had time to read it.
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
