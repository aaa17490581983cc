import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// The behaviour of one address of a ``Trap``.
struct TrapAnswer: Sendable {
    /// The server's certificates; `nil` for a server that says nothing and never speaks TLS.
    var certificate: HostileCertificate?
    /// The answer to the first bytes of a request.
    var start = ByteBuffer()
    /// The bytes that follow, as long as the daemon reads.
    var endless = ByteBuffer()
    /// Whether `start` is sent one byte a second.
    var isSlow = false
    /// Whether the connection is closed after `start`.
    var closes = false

    /// A server that says nothing.
    static let silence = TrapAnswer(certificate: nil)

    private init(certificate: HostileCertificate?) { self.certificate = certificate }

    /// A server with a certificate of its own.
    init(_ start: String = "", endless: String = "") throws {
        self.init(certificate: try HostileCertificate())
        self.start = ByteBuffer(string: start)
        // Pieces of a size that lets the writer keep up with the reader.
        self.endless = endless.isEmpty ? ByteBuffer() : ByteBuffer(string: String(repeating: endless, count: 16_384 / endless.utf8.count))
    }

    /// A server with a JSON answer.
    init(json: [UInt8], status: String = "200 OK") throws {
        try self.init("HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(json.count)\r\n\r\n")
        self.start.writeBytes(json)
    }

    /// The answer, sent one byte a second.
    var slowly: Self { self.with { $0.isSlow = true } }
    /// The answer, after which the connection is closed.
    var thenClosed: Self { self.with { $0.closes = true } }

    func with(_ change: (inout Self) -> Void) -> Self {
        var changed = self
        change(&changed)
        return changed
    }
}

/// A server on every loopback address, which the daemon must not call often, and which answers as no device does.
final class Trap: Sendable {
    private struct State {
        var calls: [String] = []
        var open = 0
        /// The seconds that the connections to each address took.
        var seconds: [String: Double] = [:]
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()
    private let listener: any Channel
    let port: UInt16

    /// The own addresses that were called.
    var calls: [String] { self.shared.state.withLock { $0.calls } }
    /// The number of open connections.
    var open: Int { self.shared.state.withLock { $0.open } }
    /// The seconds from the call of each address to the end of its connection.
    var seconds: [String: Double] { self.shared.state.withLock { $0.seconds } }

    /// Opens a server. The address whose last number is N behaves as answer N - 1. Any other address closes connections at once.
    init(_ answers: [TrapAnswer] = []) throws {
        let contexts = try answers.map { answer in
            try answer.certificate.map {
                var configuration = TLSConfiguration.makeServerConfiguration(
                    certificateChain: $0.chain, privateKey: .privateKey($0.key))
                configuration.minimumTLSVersion = .tlsv12
                return try NIOSSLContext(configuration: configuration)
            }
        }
        let shared = self.shared
        self.listener = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                let address = channel.localAddress?.ipAddress ?? ""
                shared.state.withLock {
                    $0.calls.append(address)
                    $0.open += 1
                }
                let began = ContinuousClock.now
                channel.closeFuture.whenComplete { _ in
                    shared.state.withLock {
                        $0.open -= 1
                        $0.seconds[address] = LiveSession.milliseconds(since: began) / 1000
                    }
                }
                return channel.eventLoop.makeCompletedFuture {
                    let index = (address.split(separator: ".").last.flatMap { Int($0) } ?? 0) - 1
                    guard answers.indices.contains(index) else { return channel.close(promise: nil) }
                    guard let context = contexts[index] else { return }
                    try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: context), Answerer(answers[index]))
                }
            }
            .bind(host: "0.0.0.0", port: 0).wait()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    deinit { self.listener.close(promise: nil) }

    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let answer: TrapAnswer
        private var left: ByteBuffer
        private var hasBegun = false

        init(_ answer: TrapAnswer) {
            self.answer = answer
            self.left = answer.start
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !self.hasBegun else { return }
            self.hasBegun = true
            guard !self.answer.isSlow else { return self.sendByte(context) }
            let channel = context.channel
            let closes = self.answer.closes
            context.writeAndFlush(self.wrapOutboundOut(self.left)).whenComplete { _ in if closes { channel.close(promise: nil) } }
            if self.answer.endless.readableBytes > 0 { self.goOn(context) }
        }

        private func goOn(_ context: ChannelHandlerContext) {
            let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.writeAndFlush(self.wrapOutboundOut(self.answer.endless)).whenSuccess {
                // In a turn of its own: a write that succeeds at once would otherwise recurse without end.
                this.eventLoop.execute {
                    let (this, context) = this.value
                    this.goOn(context)
                }
            }
        }

        private func sendByte(_ context: ChannelHandlerContext) {
            guard let byte = self.left.readSlice(length: 1) else { return }
            let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.writeAndFlush(self.wrapOutboundOut(byte)).whenSuccess {
                this.eventLoop.scheduleTask(in: .seconds(1)) {
                    let (this, context) = this.value
                    this.sendByte(context)
                }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
