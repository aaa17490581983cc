import EarshotWire
import NIOCore

/// Frames to writes on one connection, and how much of that waits for the socket.
///
/// Small frames are mostly answers: while the socket is full they are counted until it takes them, so that a peer that asks and
/// asks and never reads does not fill the memory. Bodies are bounded elsewhere.
final class FrameWriter {
    /// Bytes that wait, with a share for each write.
    private(set) var unwritten = 0 {
        didSet { self.accounts.noteUnwritten(self.unwritten - oldValue) }
    }
    /// Some of what waited has gone out.
    var hasRoom: (ChannelHandlerContext) -> Void = { _ in }
    private let accounts: PeerAccounts

    /// About what a write that waits takes in memory beyond its bytes.
    private static let overhead = 256

    /// What a write has room for from the start, in bytes.
    private static let shortestWrite = 256

    /// Small frames are written together up to so many bytes: each write that is done shows that a slow connection moves.
    private static let longestWrite = 256 * 1024

    /// A connection's, whose peers' accounts these are.
    init(_ accounts: PeerAccounts) { self.accounts = accounts }

    /// One write for small frames together; a large body is written as the buffer that it is, not copied. Nothing is flushed.
    func write(
        _ frames: [Frame], withPreamble: Bool = false, context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil
    ) throws(WireError) {
        var buffer = context.channel.allocator.buffer(capacity: Self.shortestWrite)
        if withPreamble { buffer.writeBytes(WireLimits.preamble) }
        for (number, frame) in frames.enumerated() {
            // As much as all of them take if they are like the first one. Far too much would stay, and be counted by nobody, until the socket takes it.
            if number == 1 { buffer.reserveCapacity(minimumWritableBytes: min(buffer.readableBytes * frames.count, Self.longestWrite)) }
            if buffer.readableBytes >= Self.longestWrite {
                self.write(buffer, context: context, promise: nil)
                buffer = context.channel.allocator.buffer(capacity: Self.longestWrite)
            }
            if let body = try FrameEncoder.encodeHead(frame, into: &buffer) {
                guard body.readableBytes > EarshotLimits.copiedBody else {
                    buffer.writeImmutableBuffer(body)
                    continue
                }
                context.write(NIOAny(buffer), promise: nil)
                context.write(NIOAny(body), promise: nil)
                buffer = context.channel.allocator.buffer(capacity: Self.shortestWrite)
            }
        }
        self.write(buffer, context: context, promise: promise)
    }

    /// One write of what is encoded already.
    func write(_ buffer: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        guard !context.channel.isWritable, buffer.readableBytes > 0 else {
            context.write(NIOAny(buffer), promise: promise)
            return
        }
        let weight = buffer.readableBytes + Self.overhead
        let written = promise ?? context.eventLoop.makePromise()
        self.unwritten += weight
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.unwritten -= weight
            this.hasRoom(context)
        }
        context.write(NIOAny(buffer.compacted), promise: written)
    }
}
