import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOTLS
import Synchronization
import Testing

@testable import Earshot

/// Something to name a connection by.
private final class Token: Sendable {}

@Suite struct UnprovenConnectionTests {
    private let connections = UnprovenConnections()
    private let closed = Box<[Int]>([])

    private func admit(_ number: Int, _ host: String, _ tokens: inout [Token]) throws {
        let token = Token()
        tokens.append(token)
        self.connections.admit(ObjectIdentifier(token), from: try SocketAddress(ipAddress: host, port: 1)) { [closed] in
            closed.withLock { $0.append(number) }
        }
    }

    @Test func unprovenConnections() throws {
        var tokens: [Token] = []
        for number in 0..<EarshotLimits.unprovenConnections { try self.admit(number, "10.0.0.\(number + 1)", &tokens) }
        #expect(self.closed.value == [])
        #expect(self.connections.count == EarshotLimits.unprovenConnections)
        try self.admit(99, "10.0.1.1", &tokens)
        #expect(self.closed.value == [0], "the oldest gives way")
        #expect(self.connections.count == EarshotLimits.unprovenConnections)
        // One that was proven makes room.
        self.connections.remove(ObjectIdentifier(tokens[1]))
        try self.admit(100, "10.0.1.2", &tokens)
        #expect(self.closed.value == [0])
    }

    @Test(arguments: [
        (same: ["10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1"], other: "10.0.0.2"),
        (same: ["fd00::1", "fd00::2", "fd00::ffff:0:0:1", "fd00::1", "fd00::3"], other: "fd00:0:0:1::1"),
    ]) func unprovenConnectionsPerAddress(same: [String], other: String) throws {
        var tokens: [Token] = []
        try self.admit(-1, other, &tokens)
        for number in 0..<EarshotLimits.unprovenConnectionsPerAddress { try self.admit(number, same[number], &tokens) }
        #expect(self.closed.value == [])
        try self.admit(4, same[4], &tokens)
        #expect(self.closed.value == [0], "the oldest of the same address gives way, not the oldest of all")
        try self.admit(5, other, &tokens)
        #expect(self.closed.value == [0])
    }
}

@Suite struct AcceptBackOffTests {
    /// Counts the reads that reach the socket.
    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = any Channel
        var reads = 0
        func read(context: ChannelHandlerContext) { self.reads += 1 }
    }

    private func channel() throws -> (EmbeddedChannel, ReadCounter) {
        let counter = ReadCounter()
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers(
            counter, AcceptBackOffHandler(delay: TimeAmount(EarshotLimits.acceptBackOff), logger: quietLogger))
        return (channel, counter)
    }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM]) func acceptBackOff(code: CInt) throws {
        let (channel, counter) = try self.channel()
        channel.read()
        #expect(counter.reads == 1)
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        for _ in 0..<10 { channel.read() }
        #expect(counter.reads == 1, "no spin")
        channel.embeddedEventLoop.advanceTime(by: TimeAmount(EarshotLimits.acceptBackOff) - .nanoseconds(1))
        #expect(counter.reads == 1)
        channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(counter.reads == 2, "accepts again")
        channel.read()
        #expect(counter.reads == 3)
        _ = try? channel.finish()
    }

    @Test func otherErrorsDoNotPause() throws {
        let (channel, counter) = try self.channel()
        channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
        channel.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel)
        channel.read()
        #expect(counter.reads == 1)
        _ = try? channel.finish()
    }
}

/// A responder's handler in a channel whose time the test moves, and an initiator made by hand.
final class HandlerBench {
    /// Counts the reads that reach the socket.
    final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var reads = 0
        func read(context: ChannelHandlerContext) {
            self.reads += 1
            context.read()
        }
        /// Writes that a full socket holds, where it is one.
        var held: [EventLoopPromise<Void>]?
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            guard self.held != nil else { return context.write(data, promise: promise) }
            if let promise { self.held?.append(promise) }
        }
    }

    let directory: StateDirectory
    let initiator: Identity
    let responder: Identity
    let channel = EmbeddedChannel()
    let counter = ReadCounter()
    let events = Box<[ConnectionEvent]>([])
    let settled = Box<[String]>([])
    var decoder = FrameDecoder()
    var preamble = PreambleDecoder()

    init() throws {
        self.directory = try StateDirectory()
        for name in ["a", "b"] {
            try FileManager.default.createDirectory(atPath: "\(self.directory.path)/\(name)", withIntermediateDirectories: false)
        }
        self.initiator = try Identity.load(from: self.directory.path + "/a")
        self.responder = try Identity.load(from: self.directory.path + "/b")
        let key = self.initiator.publicKey
        let responder = self.responder
        let settings = ConnectionHandler.Settings(
            role: .responder, tickets: DataTickets(), hello: try makeHello(responder, "bob"), expectedPeer: nil, dialledAddress: nil,
            spokenTLS: SpokenTLS(),
            sign: { try responder.sign($0) }, emit: { [events] event in events.withLock { $0.append(event) } },
            settled: { [settled] result in
                let word =
                    switch result {
                    case .success: "proven"
                    case .failure(let error): error.code.rawValue
                    }
                settled.withLock { $0.append(word) }
            })
        self.decoder.phase = .proven
        try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try self.channel.pipeline.syncOperations.addHandlers(
            self.counter, ConnectionHandler(settings: settings, logger: quietLogger, security: .tls { _ in key }))
        self.channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil))
    }

    func send(_ frames: [Frame], preamble: Bool = false) throws {
        var buffer = ByteBuffer()
        if preamble { buffer.writeBytes(WireLimits.preamble) }
        for frame in frames { try FrameEncoder.encode(frame, into: &buffer) }
        try self.channel.writeInbound(buffer)
    }

    /// What the handler has written since the last call.
    func received() throws -> [Frame] {
        var frames: [Frame] = []
        while var buffer = try self.channel.readOutbound(as: ByteBuffer.self) {
            guard try self.preamble.consume(&buffer) else { continue }
            self.decoder.feed(buffer)
            while let frame = try self.decoder.next() { frames.append(frame) }
        }
        return frames
    }

    func prove() throws {
        let hello = try makeHello(self.initiator, "alice")
        try self.send([.hello(hello)], preamble: true)
        let answer = try self.received()
        guard answer.count == 2, case .hello(let theirs) = answer[0] else {
            throw EarshotError(.protocolViolation, "no hello came back: \(answer)")
        }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs), transport: .tls)
        try self.send([.proof(Proof(signature: try self.initiator.sign(transcript.proofInput(of: .initiator))))])
    }

    /// How the connection ended, as the node heard it.
    var end: ConnectionEnd? {
        for case .closed(_, let end) in self.events.value { return end }
        return nil
    }

    func advance(_ duration: Duration) { self.channel.embeddedEventLoop.advanceTime(by: TimeAmount(duration)) }
}

@Suite struct ConnectionHandlerTests {
    @Test func handshakeTime() throws {
        let bench = try HandlerBench()
        bench.advance(EarshotLimits.handshakeTime - .nanoseconds(1))
        #expect(bench.settled.value == [])
        #expect(bench.channel.isActive)
        bench.advance(.nanoseconds(1))
        #expect(bench.settled.value == ["timed-out"])
        #expect(!bench.channel.isActive)
    }

    @Test func aSlowHelloOfOneByteAtATimeEndsAtTheSameTime() throws {
        let bench = try HandlerBench()
        var hello = ByteBuffer(bytes: WireLimits.preamble)
        try FrameEncoder.encode(.hello(try makeHello(bench.initiator, "alice")), into: &hello)
        var seconds = 0
        while bench.channel.isActive, let byte = hello.readSlice(length: 1) {
            try bench.channel.writeInbound(byte)
            bench.advance(.seconds(1))
            seconds += 1
        }
        #expect(seconds == 10)
        #expect(bench.settled.value == ["timed-out"])
    }

    @Test func helloPayload() throws {
        for (length, isAllowed) in [(WireLimits.helloPayload, true), (WireLimits.helloPayload + 1, false)] {
            let bench = try HandlerBench()
            var buffer = ByteBuffer(bytes: WireLimits.preamble)
            buffer.writeInteger(UInt32(length))
            buffer.writeInteger(FrameType.hello.rawValue)
            try bench.channel.writeInbound(buffer)
            #expect(bench.channel.isActive == isAllowed, "\(length)")
            #expect(bench.settled.value == (isAllowed ? [] : ["protocol-violation"]))
        }
    }

    @Test func proving() throws {
        let bench = try HandlerBench()
        try bench.prove()
        #expect(bench.settled.value == ["proven"])
        guard case .proven(let connection)? = bench.events.value.first else {
            Issue.record("the node was not told")
            return
        }
        #expect(connection.peer.id == bench.initiator.id)
        bench.advance(EarshotLimits.handshakeTime)
        #expect(bench.channel.isActive)
    }

    @Test func pingAfter() throws {
        let bench = try HandlerBench()
        try bench.prove()
        _ = try bench.received()
        bench.advance(.seconds(9))
        #expect(try bench.received() == [])
        bench.advance(.seconds(6))
        let pings = try bench.received()
        #expect(!pings.isEmpty)
        for case .ping(let value) in pings { try bench.send([.pong(value)]) }
        bench.advance(.seconds(9))
        #expect(bench.channel.isActive)
    }

    @Test func deadAfter() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.advance(EarshotLimits.deadAfter - .seconds(1))
        #expect(bench.end == nil)
        bench.advance(.seconds(6))
        #expect(bench.end == .dead, "noticed within the 30 s that the design promises")
    }

    /// The worst moment to fall silent is right after a check.
    @Test func deadAfterTheWorstMoment() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.advance(.milliseconds(2501))
        try bench.send([.ping(1)])
        bench.advance(.seconds(24))
        #expect(bench.end == nil)
        // With two seconds to spare for a busy machine.
        bench.advance(.seconds(4))
        #expect(bench.end == .dead)
    }

    @Test func anythingHeardIsASignOfLife() throws {
        let bench = try HandlerBench()
        try bench.prove()
        for value in 0..<20 {
            bench.advance(.seconds(9))
            try bench.send([.ping(UInt64(value))])
        }
        #expect(bench.end == nil)
        #expect(bench.channel.isActive)
    }

    /// Tiny frames are weighed, so that a flood of them stops the reading too.
    @Test func unprocessedBytes() throws {
        let bench = try HandlerBench()
        try bench.prove()
        var taken = 0
        var frames = 0
        var before = bench.counter.reads
        bench.channel.read()
        #expect(bench.counter.reads == before + 1)
        while taken < EarshotLimits.unprocessedBytes {
            try bench.send([.sessionEnd(.random())])
            frames += 1
            guard case .received(_, _, let weight)? = bench.events.value.last else { break }
            taken += weight
        }
        #expect(frames <= EarshotLimits.unprocessedBytes / 256)
        before = bench.counter.reads
        bench.channel.read()
        #expect(bench.counter.reads == before, "no more is read until the node has caught up")
        guard case .received(let connection, _, let weight)? = bench.events.value.last else { return }
        connection.processed(weight)
        bench.channel.embeddedEventLoop.run()
        #expect(bench.counter.reads == before + 1)
        // Behind is not silent.
        bench.channel.read()
    }

    @Test func aPingFloodDoesNotPileUpAnswers() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.channel.isWritable = false
        bench.counter.held = []
        let before = bench.counter.reads
        var pings = 0
        // As the socket would: one read, one delivery.
        while pings < 200_000 {
            let reads = bench.counter.reads
            bench.channel.read()
            guard bench.counter.reads > reads else { break }
            try bench.send((0..<1000).map { .ping(UInt64($0)) })
            pings += 1000
        }
        #expect(bench.counter.reads > before)
        #expect(pings < 200_000, "answers that nobody reads stop the reading")
        let stuck = bench.counter.reads
        for promise in bench.counter.held ?? [] { promise.succeed() }
        bench.counter.held = nil
        #expect(bench.counter.reads == stuck + 1, "and their going out resumes it")
    }
}

@Suite struct FirstByteTests {
    private func channel(_ preference: EncryptionPreference) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(FirstByteHandler(preference: preference) { _, _ in })
        return channel
    }

    @Test(
        arguments: [
            (EncryptionPreference.required, [0x16, 3, 1]), (.optional, [0x16, 3, 1]), (.optional, WireLimits.preamble),
            (.none, WireLimits.preamble),
        ] as [(EncryptionPreference, [UInt8])]) func whatThePreferencePermitsGoesOn(preference: EncryptionPreference, bytes: [UInt8]) throws
    {
        let channel = try self.channel(preference)
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        #expect(channel.isActive)
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: bytes))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }

    @Test(arguments: [(EncryptionPreference.required, WireLimits.preamble), (.none, [0x16, 3, 1])] as [(EncryptionPreference, [UInt8])])
    func whatItExcludesIsToldWhyNot(preference: EncryptionPreference, bytes: [UInt8]) throws {
        let channel = try self.channel(preference)
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        #expect(!channel.isActive)
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        var answer = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(answer.readBytes(length: WireLimits.preamble.count) == WireLimits.preamble)
        var decoder = FrameDecoder()
        decoder.feed(answer)
        guard case .refusal(let refusal)? = try decoder.next() else {
            Issue.record("no refusal")
            return
        }
        #expect(refusal.code == .encryptionMismatch)
    }

    @Test(arguments: [0x00, 0x15, 0x17, 0x47, 0x80, 0xFF] as [UInt8]) func garbageIsClosedWithoutAWord(byte: UInt8) throws {
        let channel = try self.channel(.optional)
        try channel.writeInbound(ByteBuffer(bytes: [byte]))
        #expect(!channel.isActive)
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }
}
