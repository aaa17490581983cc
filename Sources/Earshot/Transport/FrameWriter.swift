import EarshotWire
import NIOCore

/// Encodes frames into writes on one connection, and counts the output that waits for the socket.
///
/// While the socket is full, replies to a peer's frames are counted, so that a peer that keeps asking and never reads cannot fill the
/// memory. This side's own output must not prevent reading from the peer: two peers that send each other much would otherwise each wait
/// for the other to read. Own output is bounded where it originates, and a message leaves those bounds when its time is over. It is
/// therefore counted separately here.
/// itself.
final class FrameWriter {
    /// Bytes of replies that wait, with a fixed part for each write.
    private(set) var unwritten = 0 {
        didSet { self.accounts.noteUnwritten(self.unwritten - oldValue) }
    }
    /// Bytes of this side's own output that wait.
    private var unread = 0
    /// The last time at which the socket accepted output, or had none to accept. With TLS, output that was flushed together counts when
    /// all of it has been accepted.
    private var lastTaken = NIODeadline.distantPast
    /// The time since which more than `EarshotLimits.unreadBytes` of own output have been waiting.
    private var muchUnreadSince: NIODeadline?
    /// Called when some of the waiting output has been sent.
    var hasRoom: (ChannelHandlerContext) -> Void = { _ in }
    private let accounts: PeerAccounts

    /// The approximate memory of a waiting write beyond its bytes.
    private static let overhead = 256

    /// The initial capacity of a write's buffer, in bytes.
    private static let shortestWrite = 256

    /// The maximum size of a write that combines small frames, in bytes. Each completed write shows progress on a slow connection.
    private static let longestWrite = 256 * 1024

    /// Creates the writer of a connection. `accounts` are those of all peers.
    init(_ accounts: PeerAccounts) { self.accounts = accounts }

    /// Whether so much output waits that the peer is considered to have stopped reading permanently.
    func isGivenUp(on eventLoop: any EventLoop) -> Bool {
        guard let since = self.muchUnreadSince else { return false }
        let now = eventLoop.now
        if now - self.lastTaken >= TimeAmount(EarshotLimits.unreadTime) { return true }
        return self.unread > EarshotLimits.mostUnreadBytes && now - since >= TimeAmount(EarshotLimits.deadAfter)
    }

    /// Writes small frames together in one buffer. A large body is written as its own buffer, without a copy. Does not flush.
    func write(
        _ frames: [Frame], withPreamble: Bool = false, context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil
    ) throws(WireError) {
        var buffer = context.channel.allocator.buffer(capacity: Self.shortestWrite)
        // The bytes of own output in the buffer.
        var own = 0
        if withPreamble { buffer.writeBytes(WireLimits.preamble) }
        for (number, frame) in frames.enumerated() {
            // Reserves enough for all frames, if they are like the first one. Excess capacity would stay uncounted until the socket
            // accepts the write.
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

    /// Writes encoded bytes, of which `own` are own output.
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

    /// Counts a write that waits because the socket is full.
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
