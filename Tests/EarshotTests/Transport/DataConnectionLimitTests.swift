import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

/// The limits of waiting bytes on either side of a data connection.
@Suite(.timeLimit(.minutes(1))) struct DataConnectionLimitTests {
    private let channel = NIOAsyncTestingChannel()
    private let held = Box<[EventLoopPromise<Void>]>([])
    private let reads = Box(0)

    /// Holds writes, and counts reads.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        private let held: Box<[EventLoopPromise<Void>]>
        private let reads: Box<Int>
        init(_ held: Box<[EventLoopPromise<Void>]>, _ reads: Box<Int>) { (self.held, self.reads) = (held, reads) }
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { self.held.withLock { $0.append(promise) } }
        }
        func read(context: ChannelHandlerContext) { self.reads.withLock { $0 += 1 } }
    }

    private final class Predecessor: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
    }

    private func connection() async throws -> DataConnection {
        let peer = ProvenPeer(
            id: peerID(1), displayName: try DisplayName("bob"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let (channel, held, reads) = (self.channel, self.held, self.reads)
        let connection = try await channel.testingEventLoop.submit {
            let predecessor = Predecessor()
            try channel.pipeline.syncOperations.addHandlers([Socket(held, reads), predecessor])
            let transfer = TransferID(ResourceID.random())
            return try DataConnection(channel, behind: predecessor, peer: peer, transfer: transfer, logger: quietLogger)
        }.get()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        return connection
    }

    /// A writer continues while fewer bytes than the limit wait for the socket, including frame headers.
    @Test(arguments: [false, true]) func aWriterWaitsAtTheLimitInFlight(_ isFull: Bool) async throws {
        let connection = try await self.connection()
        let header = WireLimits.frameHeaderLength
        let piece = ByteBuffer(repeating: 0, count: EarshotLimits.dataBlock)
        var left = EarshotLimits.dataInFlight
        var frames = 1
        while left > piece.readableBytes + 2 * header {
            try await connection.write(piece)
            left -= piece.readableBytes + header
            frames += 1
        }
        let last = ByteBuffer(repeating: 0, count: left - header - (isFull ? 0 : 1))
        let count = frames
        let isDone = Box(false)
        let task = Task {
            try await connection.write(last)
            isDone.withLock { $0 = true }
        }
        try await eventually("it is on its way") { self.held.value.count == count }
        if isFull {
            for _ in 0..<100 { await Task.yield() }
            #expect(!isDone.value, "with as much as the limit, it waits")
            let held = self.held.value
            try await self.channel.testingEventLoop.executeInContext { held.last?.succeed() }
        }
        try await task.value
        let held = self.held.value
        try await self.channel.testingEventLoop.executeInContext { for promise in held.dropLast(isFull ? 1 : 0) { promise.succeed() } }
        try await self.channel.close()
    }

    private func come(_ count: Int) async throws {
        var frame = ByteBuffer()
        DataFrame.data(count: count).encode(into: &frame)
        frame.writeRepeatingByte(0, count: count)
        try await self.channel.writeInbound(frame)
    }

    private func isRead() async throws -> Bool {
        let before = self.reads.value
        let channel = self.channel
        try await channel.testingEventLoop.submit { channel.pipeline.syncOperations.read() }.get()
        return self.reads.value == before + 1
    }

    /// Bytes that a receiver may request again are kept, up to the size of its window. With a larger window, a stream stays on the control
    /// connection.
    @Test(arguments: [false, true]) func aLargerWindowKeepsAStreamOnTheControlConnection(isAbove: Bool) async throws {
        let data = try await self.connection()
        let control = NIOAsyncTestingChannel()
        try await control.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        let connection = Connection(channel: control, peer: data.peer, isInitiator: true, dialledAddress: nil)
        let flow = OutgoingFlow(.random(), Timers(on: NIOAsyncTestingEventLoop())) {}
        flow.accepted(EarshotLimits.streamWindows + (isAbove ? 1 : 0), on: connection)
        #expect(flow.move(to: data) == !isAbove)
        flow.close()
        try await control.close()
        try await self.channel.close()
    }

    /// The lower limit before there is a reader, because a peer may send before anyone reads.
    @Test func readingBeforeItsReader() async throws {
        let connection = try await self.connection()
        try await self.come(DataInbox.unreadLimit - 1)
        #expect(try await self.isRead())
        try await self.come(1)
        #expect(try await !self.isRead(), "with as much as the limit, nothing more is read")
        let before = self.reads.value
        _ = try #require(try await connection.read())
        try await eventually("it is read on") { self.reads.value == before + 1 }
        try await self.channel.close()
    }

    /// The socket is read while fewer bytes than the limit wait for the reader.
    @Test func readingPausesAtTheLimit() async throws {
        let connection = try await self.connection()
        try await self.come(1)
        _ = try #require(try await connection.read())
        var bytes = 0
        func come(_ count: Int) async throws {
            try await self.come(count)
            bytes += count
        }
        func isRead() async throws -> Bool { try await self.isRead() }
        while bytes + EarshotLimits.dataBlock < EarshotLimits.dataInFlight { try await come(EarshotLimits.dataBlock) }
        try await come(EarshotLimits.dataInFlight - 1 - bytes)
        #expect(try await isRead())
        try await come(1)
        #expect(try await !isRead(), "with as much as the limit, nothing more is read")
        let before = self.reads.value
        // Taking half of the bytes makes room.
        var taken = 0
        while taken <= EarshotLimits.dataInFlight / 2 { taken += try #require(try await connection.read()).readableBytes }
        try await eventually("it is read on") { self.reads.value == before + 1 }
        try await self.channel.close()
    }
}
