import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The limits of TLS handshakes on an event loop: bytes and time.
@Suite struct HandshakeGateTests {
    private let loop = EmbeddedEventLoop()
    private let done = Box<[Int]>([])
    private let spent = Box(TimeAmount.zero)
    private var turns: HandshakeTurns { HandshakeTurns(on: self.loop) { [spent] in spent.value } }

    /// Returns work that computes for this number of milliseconds.
    private func work(_ number: Int, _ milliseconds: Int64) -> @Sendable () -> Void {
        { [spent, done] in
            spent.withLock { $0 = $0 + .milliseconds(milliseconds) }
            done.withLock { $0.append(number) }
        }
    }

    @Test func ordinaryHandshakesDoNotWait() {
        let turns = self.turns
        let turn = EarshotLimits.handshakeTurn.components.attoseconds / 1_000_000_000_000_000
        for number in 0..<100 { turns.take(self.work(number, turn)) }
        #expect(self.done.value == Array(0..<100))
    }

    @Test func afterALongOneEveryOneWaitsItsTurn() {
        let turns = self.turns
        turns.take(self.work(0, 50))
        for number in 1...3 { turns.take(self.work(number, 0)) }
        #expect(self.done.value == [0])
        let pause = Int64(50 * EarshotLimits.handshakePause)
        self.loop.advanceTime(by: .milliseconds(pause - 1))
        #expect(self.done.value == [0])
        self.loop.advanceTime(by: .milliseconds(1))
        #expect(self.done.value == [0, 1, 2, 3])
        turns.take(self.work(4, 0))
        #expect(self.done.value == [0, 1, 2, 3, 4])
    }

    private func channel(_ turns: HandshakeTurns) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: HandshakeGate(turns: turns), loop: self.loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    @Test func handshakesAboveTheLimitAreClosed() throws {
        let channel = try self.channel(self.turns)
        try channel.writeInbound(ByteBuffer(repeating: 1, count: EarshotLimits.handshakeBytes - 1))
        try channel.writeInbound(ByteBuffer(repeating: 1, count: 1))
        #expect(channel.isActive)
        try channel.writeInbound(ByteBuffer(repeating: 1, count: 1))
        #expect(!channel.isActive)
        // An open gate counts no bytes.
        let other = try self.channel(self.turns)
        HandshakeGate.open(other.pipeline.syncOperations)
        try other.writeInbound(ByteBuffer(repeating: 1, count: EarshotLimits.handshakeBytes + 1))
        #expect(other.isActive)
        #expect(try other.readInbound(as: ByteBuffer.self)?.readableBytes == EarshotLimits.handshakeBytes + 1)
        _ = try other.finish()
    }

    /// Counts the reads that reach the socket.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var count = 0
        func read(context: ChannelHandlerContext) { self.count += 1 }
    }

    @Test func theSocketIsNotReadWhileInputWaits() throws {
        let turns = self.turns
        let channel = try self.channel(turns)
        let reads = Reads()
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        channel.read()
        #expect(reads.count == 1)
        turns.take(self.work(0, 50))
        try channel.writeInbound(ByteBuffer(string: "one"))
        let before = reads.count
        channel.read()
        channel.read()
        #expect(reads.count == before)
        self.loop.advanceTime(by: .milliseconds(Int64(50 * EarshotLimits.handshakePause)))
        #expect(reads.count > before)
        _ = try? channel.finish()
    }

    @Test func whatWaitsArrivesTogether() throws {
        let turns = self.turns
        let channel = try self.channel(turns)
        turns.take(self.work(0, 50))
        try channel.writeInbound(ByteBuffer(string: "one "))
        try channel.writeInbound(ByteBuffer(string: "two"))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        self.loop.advanceTime(by: .milliseconds(Int64(50 * EarshotLimits.handshakePause)))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "one two"))
        // A connection that has ended while it waited causes no work.
        turns.take(self.work(1, 50))
        try channel.writeInbound(ByteBuffer(string: "three"))
        channel.pipeline.fireChannelInactive()
        self.loop.advanceTime(by: .seconds(1))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        _ = try? channel.finish()
    }
}
