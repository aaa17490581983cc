import Earshot
import EarshotCore
import EarshotWaiting
import EarshotWire
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

#if canImport(Glibc)
    import Glibc
#endif

/// The HTTPS client: one request for each connection. The device's certificate is compared with the expected id in the handshake, before a
/// byte of the request is sent. Redirects and proxies do not exist here: an answer is an answer.
struct DeviceClient: Sendable {
    /// The body of a request.
    enum Content: Sendable {
        case empty
        case json(ByteBuffer)
        case upload(size: UInt64, any AsyncSequence<ByteBuffer, any Error> & Sendable)
    }

    let tls: DeviceTLS
    let group: any EventLoopGroup

    /// Sends a POST request and returns the proven id of the device and its answer. If the task is cancelled, the connection is closed.
    ///
    /// `target` is the path and query. The device must prove the id `expected`, or any if that is `nil`. `answerTime` is the time for the
    /// answer; `nil` for a request that waits for a user. An upload has time limits of its own. A longer answer than `answerBytes` is an
    /// error.
    func post(
        _ target: String, _ content: Content, to address: PeerAddress, expecting expected: PeerID?, answerTime: TimeAmount? = nil,
        answerBytes: Int = LocalSendLimits.shortAnswerBytes
    ) async throws(DeviceFailure) -> (PeerID, ExchangeAnswer) {
        guard let socketAddress = address.socketAddress else { throw .unreachable("the interface of the address is gone") }
        let proof = DeviceProof(expected: expected)
        let exchange = Exchange()
        let channel = try await self.connect(to: socketAddress, exchange, proof, answerBytes)
        let result = await withTaskCancellationHandler {
            await self.perform(target, content, to: address, on: channel, exchange, answerTime)
        } onCancel: {
            channel.eventLoop.execute { channel.closeWithoutGoodbye() }
        }
        let answer = try result.get()
        guard let id = proof.shown else { throw .invalid("the device has shown no certificate") }
        return (id, answer)
    }

    /// The outcomes of one exchange, which its handler sets.
    private struct Exchange: Sendable {
        let ready = OneShot<DeviceFailure?>()
        let answer = OneShot<Result<ExchangeAnswer, DeviceFailure>>()
    }

    private func connect(
        to address: SocketAddress, _ exchange: Exchange, _ proof: DeviceProof, _ answerBytes: Int
    ) async throws(DeviceFailure) -> any Channel {
        let bootstrap = ClientBootstrap(group: self.group)
            .connectTimeout(TimeAmount(EarshotLimits.connectTime))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.recvAllocator, value: Transport.strangersAllocator)
            // Devices that send without end take turns with other connections.
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { [tls] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.probeSilence()
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandlers(
                        tls.gate(on: channel.eventLoop), try tls.clientHandler(proof), AnswerBound(limit: answerBytes))
                    var limits = NIOHTTPDecoderLimitConfiguration()
                    limits.maxHeaderFieldSize = LocalSendLimits.headBytes
                    limits.maxHeaderListSize = LocalSendLimits.headBytes
                    limits.maxHeaderFieldCount = LocalSendLimits.headFields
                    try pipeline.addHandlers(HTTPRequestEncoder(), position: .last)
                    try pipeline.addHandler(
                        ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)))
                    try pipeline.addHandler(ExchangeHandler(proof: proof, ready: exchange.ready, answer: exchange.answer))
                }
            }
        do {
            return try await bootstrap.connect(to: address).get()
        } catch {
            throw .unreachable(Self.reason(error))
        }
    }

    private func perform(
        _ target: String, _ content: Content, to address: PeerAddress, on channel: any Channel, _ exchange: Exchange,
        _ answerTime: TimeAmount?
    ) async -> Result<ExchangeAnswer, DeviceFailure> {
        if let failure = await exchange.ready.value() { return .failure(failure) }
        var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: target)
        // A zone has a meaning on this machine only (RFC 6874 section 1).
        head.headers.add(name: "host", value: PeerAddress(host: address.host, zone: nil, port: address.port).description)
        switch content {
        case .empty:
            head.headers.add(name: "content-length", value: "0")
            self.send(head, ByteBuffer(), answerTime, on: channel)
            return await exchange.answer.value()
        case .json(let body):
            head.headers.add(name: "content-type", value: "application/json")
            head.headers.add(name: "content-length", value: "\(body.readableBytes)")
            self.send(head, body, answerTime, on: channel)
            return await exchange.answer.value()
        case .upload(let size, let body):
            head.headers.add(name: "content-type", value: "application/octet-stream")
            head.headers.add(name: "content-length", value: "\(size)")
            self.send(head, nil, LocalSendLimits.silentTime, on: channel)
            // The device may answer at any time, which ends the sending.
            return await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    guard let failure = await UploadSender(channel: channel).send(body, size: size) else { return }
                    exchange.answer.settle(.failure(failure))
                    channel.eventLoop.execute { channel.closeWithoutGoodbye() }
                }
                let answer = await exchange.answer.value()
                group.cancelAll()
                return answer
            }
        }
    }

    private func send(_ head: HTTPRequestHead, _ body: ByteBuffer?, _ answerTime: TimeAmount?, on channel: any Channel) {
        channel.eventLoop.execute {
            // The handler is gone if the connection is lost.
            guard let context = try? channel.pipeline.syncOperations.context(handlerType: ExchangeHandler.self),
                let handler = context.handler as? ExchangeHandler
            else { return }
            handler.send(head, body: body, answerTime: answerTime, context: context)
        }
    }

    /// Returns an error in words for the user.
    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as NIOConnectionError: error.connectionErrors.first.map { Self.reason($0.error) } ?? "no answer"
        case is ChannelError: "no answer"
        case is NIOSSLError, is BoringSSLError: "the TLS handshake failed"
        default: "\(error)"
        }
    }
}
