import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import NIOTLS

@testable import Earshot

/// A responder's handler in a channel whose time the test controls, and an initiator with frames from the test.
final class HandlerBench {
    /// Counts the reads that reach the socket.
    final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var reads = 0
        func read(context: ChannelHandlerContext) {
            self.reads += 1
            context.read()
        }
        /// The requested closes, in order. An embedded channel does not support half-closing.
        var closes: [CloseMode] = []
        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            self.closes.append(mode)
            if mode == .all { context.close(mode: mode, promise: promise) } else { promise?.succeed() }
        }
        /// Writes that a full socket holds, if the socket is full.
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
    let accounts = PeerAccounts()
    var decoder = FrameDecoder()
    var preamble = PreambleDecoder()

    /// Creates a bench. `extensions` are those of the responder's hello.
    init(isPlaintext: Bool = false, extensions: [HelloExtension] = [], connects: Bool = true) throws {
        self.directory = try StateDirectory()
        for name in ["a", "b"] {
            try FileManager.default.createDirectory(atPath: "\(self.directory.path)/\(name)", withIntermediateDirectories: false)
        }
        self.initiator = try Identity.load(from: self.directory.path + "/a")
        self.responder = try Identity.load(from: self.directory.path + "/b")
        let key = self.initiator.publicKey
        let responder = self.responder
        var hello = try makeHello(responder, "bob")
        hello.extensions = extensions
        let settings = ConnectionHandler.Settings(
            role: .responder, tickets: DataTickets(), hello: hello, expectedPeer: nil, dialledAddress: nil, tlsPins: TLSPins(),
            accounts: self.accounts,
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
        if connects { try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait() }
        let security = isPlaintext ? ConnectionHandler.Security.plaintext : .tls { _ in key }
        try self.channel.pipeline.syncOperations.addHandlers(
            self.counter, ConnectionHandler(settings: settings, logger: quietLogger, security: security))
        guard !isPlaintext else { return }
        self.channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil))
    }

    func send(_ frames: [Frame], preamble: Bool = false) throws {
        var buffer = ByteBuffer()
        if preamble { buffer.writeBytes(WireLimits.preamble) }
        for frame in frames { try FrameEncoder.encode(frame, into: &buffer) }
        try self.channel.writeInbound(buffer)
    }

    /// Returns the frames that the handler has written since the last call.
    func received() throws -> [Frame] {
        var frames: [Frame] = []
        while var buffer = try self.channel.readOutbound(as: ByteBuffer.self) {
            guard try self.preamble.consume(&buffer) else { continue }
            self.decoder.feed(buffer)
            while let frame = try self.decoder.next() { frames.append(frame) }
        }
        return frames
    }

    /// Runs the handshake. `extensions` are those of the initiator's hello.
    func prove(extensions: [HelloExtension] = []) throws {
        var hello = try makeHello(self.initiator, "alice")
        hello.extensions = extensions
        try self.send([.hello(hello)], preamble: true)
        let answer = try self.received()
        guard answer.count == 2, case .hello(let theirs) = answer[0] else {
            throw EarshotError(.protocolViolation, "no hello came back: \(answer)")
        }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs), transport: .tls)
        try self.send([.proof(Proof(signature: try self.initiator.sign(transcript.proofInput(of: .initiator))))])
    }

    /// Frames that were passed to the node and not handled.
    var handedOn: [(connection: Connection, frames: [Frame], weight: Int)] {
        self.events.value.compactMap { event in
            if case .received(let connection, let frames, let weight) = event { (connection, frames, weight) } else { nil }
        }
    }

    /// The numbers of unreliable messages that were passed to the node together.
    var handedOnUnreliable: [Int] {
        self.events.value.compactMap { if case .receivedUnreliable(_, let messages, _) = $0 { messages.count } else { nil } }
    }

    /// Marks everything as handled by the node.
    func endTurn(isMember: Bool = false) {
        let events = self.events.value
        self.events.withLock { $0 = [] }
        for event in events {
            switch event {
            case .received(let connection, _, let weight), .receivedUnreliable(let connection, _, let weight):
                connection.turnEnded(weight, isMember: isMember)
            case .proven, .closed: break
            }
        }
        self.channel.embeddedEventLoop.run()
    }

    /// Whether the handler closes the connection. Later input is not decoded.
    var isClosing: Bool { !self.counter.closes.isEmpty }

    /// The end of the connection as reported to the node.
    var end: LinkEnd? {
        for case .closed(_, let end) in self.events.value { return end }
        return nil
    }

    func advance(_ duration: Duration) { self.channel.embeddedEventLoop.advanceTime(by: TimeAmount(duration)) }
}
