import EarshotWire
import NIOCore

/// Frames to writes on one connection, and how much of that waits for the socket.
///
/// What a peer's frames have led to is counted while the socket is full, until that takes it, so that a peer that asks and asks and never
/// reads does not fill the memory. What this side says of its own accord must not keep a peer from being read: two that send each other much
/// would each wait for the other to read. It has bounds where it comes from, which a message leaves when its time is over, and is counted by
/// itself.
final class FrameWriter {
    /// Bytes of that which wait, with a share for each write.
    private(set) var unwritten = 0 {
        didSet { self.accounts.noteUnwritten(self.unwritten - oldValue) }
    }
    /// Bytes of this side's own accord that wait.
    private var unread = 0
    /// When the socket last took something, or there was nothing to take. Behind TLS what was flushed together counts once it is all gone.
    private var lastTaken = NIODeadline.distantPast
    /// Since when more than `EarshotLimits.unreadBytes` of its own accord wait.
    private var muchUnreadSince: NIODeadline?
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

    /// Whether so much waits that the other side is taken to have stopped reading for good.
    func isGivenUp(on eventLoop: any EventLoop) -> Bool {
        guard let since = self.muchUnreadSince else { return false }
        let now = eventLoop.now
        if now - self.lastTaken >= TimeAmount(EarshotLimits.unreadTime) { return true }
        return self.unread > EarshotLimits.mostUnreadBytes && now - since >= TimeAmount(EarshotLimits.deadAfter)
    }

    /// One write for small frames together; a large body is written as the buffer that it is, not copied. Nothing is flushed.
    func write(
        _ frames: [Frame], withPreamble: Bool = false, context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil
    ) throws(WireError) {
        var buffer = context.channel.allocator.buffer(capacity: Self.shortestWrite)
        // How much of that is of this side's own accord.
        var own = 0
        if withPreamble { buffer.writeBytes(WireLimits.preamble) }
        for (number, frame) in frames.enumerated() {
            // As much as all of them take if they are like the first one. Far too much would stay, and be counted by nobody, until the socket takes it.
            if number == 1 { buffer.reserveCapacity(minimumWritableBytes: min(buffer.readableBytes * frames.count, Self.longestWrite)) }
            if buffer.readableBytes >= Self.longestWrite {
                self.write(buffer, own: own, context: context)
                buffer = context.channel.allocator.buffer(capacity: Self.longestWrite)
                own = 0
            }
            let before = buffer.readableBytes
            if let body = try FrameEncoder.encodeHead(frame, into: &buffer) {
                guard body.readableBytes > EarshotLimits.copiedBody else {
                    buffer.writeImmutableBuffer(body)
                    own += buffer.readableBytes - before
                    continue
                }
                own += buffer.readableBytes - before
                self.write(buffer, own: own, context: context)
                self.write(body: body, context: context)
                buffer = context.channel.allocator.buffer(capacity: Self.shortestWrite)
                own = 0
            }
        }
        self.write(buffer, own: own, context: context, promise: promise)
    }

    /// One write of what is encoded already, so many bytes of it of this side's own accord.
    func write(_ buffer: ByteBuffer, own: Int, context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil) {
        guard !context.channel.isWritable, buffer.readableBytes > 0 else {
            context.write(NIOAny(buffer), promise: promise)
            return
        }
        let written = promise ?? context.eventLoop.makePromise()
        self.wait(for: written, counting: buffer.readableBytes - own, own: own, context: context)
        context.write(NIOAny(buffer.compacted), promise: written)
    }

    private func write(body: ByteBuffer, context: ChannelHandlerContext) {
        guard !context.channel.isWritable else { return context.write(NIOAny(body), promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        self.wait(for: written, counting: 0, own: body.readableBytes, context: context)
        context.write(NIOAny(body), promise: written)
    }

    /// The socket is full, and takes this some time.
    private func wait(for written: EventLoopPromise<Void>, counting bytes: Int, own: Int, context: ChannelHandlerContext) {
        let weight = bytes > 0 ? bytes + Self.overhead : 0
        let began = context.eventLoop.now
        if self.unread == 0 { self.lastTaken = began }
        self.unwritten += weight
        self.unread += own
        self.noteUnread(at: began)
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.unwritten -= weight
            this.unread -= own
            this.lastTaken = context.eventLoop.now
            this.noteUnread(at: this.lastTaken)
            this.hasRoom(context)
        }
    }

    private func noteUnread(at now: NIODeadline) {
        if self.unread <= EarshotLimits.unreadBytes {
            self.muchUnreadSince = nil
        } else if self.muchUnreadSince == nil {
            self.muchUnreadSince = now
        }
    }
}
