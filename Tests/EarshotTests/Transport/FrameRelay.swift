import EarshotWire
import NIOCore

@testable import Earshot

/// One direction through an attacker in the middle: reads a side's frames, and passes them on after `rewrite`.
final class FrameRelay: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let other: EventLoopFuture<any Channel>
    private let rewrite: @Sendable (Frame) -> Frame
    private var preamble = PreambleDecoder()
    private var decoder = FrameDecoder()
    /// The first frame of a side is preceded by the preamble, which must not be repeated.
    private var isFirst = true

    init(to other: EventLoopFuture<any Channel>, _ rewrite: @escaping @Sendable (Frame) -> Frame) {
        self.other = other
        self.rewrite = rewrite
        self.decoder.phase = .proven
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = self.unwrapInboundIn(data)
        var out = ByteBuffer()
        guard (try? self.preamble.consume(&buffer)) == true else { return }
        self.decoder.feed(buffer)
        while let frame = try? self.decoder.next() {
            if self.isFirst { out.writeBytes(WireLimits.preamble) }
            self.isFirst = false
            try? FrameEncoder.encode(self.rewrite(frame), into: &out)
        }
        let bytes = out
        self.other.whenSuccess { $0.writeAndFlush(bytes, promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) { self.other.whenSuccess { $0.close(promise: nil) } }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
