import Earshot
import EarshotCore
import EarshotWire
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// The last handler of a device's connection. It performs the actions of ``RequestStateMachine``, passes requests to the connection's task,
/// and writes the task's answers.
///
/// A timer bounds each phase: the time to a complete head, the time of a JSON body, and the silence of an upload. While a request waits for
/// its answer, the socket is read, so that the end of the connection is noticed.
final class RequestHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPServerResponsePart

    private let address: PeerAddress
    /// Records whether the connection has a request, which is an upload or has arrived whole.
    private let use: (Bool) -> Void
    /// Passes a request on.
    private let pass: (DeviceRequest) -> Void
    private var machine = RequestStateMachine()
    private var context: ChannelHandlerContext?
    private var sender: DeviceSender
    private var inbox: DataInbox?
    /// The bytes of a body since the last end of a read. A body may consist of chunks of one byte, each of which would cost a turn of the
    /// reader.
    private var gathered = ByteBuffer()
    private var timer: Scheduled<Void>?
    /// The time at which an upload's last bytes arrived.
    private var heard = NIODeadline.uptimeNanoseconds(0)
    private var isHeldUp = false
    private var wantsRead = false
    /// The bytes dropped after the last answer.
    private var dropped = 0

    init(address: PeerAddress, use: @escaping (Bool) -> Void, pass: @escaping (DeviceRequest) -> Void) {
        self.address = address
        self.use = use
        self.pass = pass
        self.sender = DeviceSender(id: nil, address: address)
    }

    static var lost: EarshotError { EarshotError(.notConnected, "the connection with the device was lost") }
    static var silent: EarshotError { EarshotError(.notConnected, "the device sent nothing for a minute") }

    // MARK: The connection

    /// Starts the time to the first head, before this handler is in the pipeline: a silent connection has no TLS yet.
    func start(_ channel: any Channel) {
        self.timer = channel.eventLoop.scheduleTask(in: LocalSendLimits.headTime) { channel.closeWithoutGoodbye() }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.end() }

    func channelInactive(context: ChannelHandlerContext) {
        self.end()
        context.fireChannelInactive()
    }

    /// Ends the body's reader and the timer with the connection.
    func end() {
        self.machine.ended()
        self.timer?.cancel()
        self.context = nil
        self.inbox?.end(.failure(Self.lost))
        self.inbox = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted = event {
            HandshakeGate.open(context.pipeline.syncOperations)
            if let tls = try? context.pipeline.syncOperations.handler(type: NIOSSLServerHandler.self) {
                self.sender = DeviceSender(id: DeviceTLS.id(of: tls), address: self.address)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError || error is ByteToMessageDecoderError else {
            // A failed handshake, or a broken connection.
            context.channel.closeWithoutGoodbye()
            return
        }
        switch self.machine.parserFailed() {
        case .refuse: self.write(DeviceAnswer(.badRequest), closes: true)
        case .close: context.channel.closeWithoutGoodbye()
        case .drop: break
        }
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head(let head):
            // The sender does not read the answers, which would fill the memory.
            guard context.channel.isWritable else { return context.channel.closeWithoutGoodbye() }
            let isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
            switch self.machine.receivedHead(isLast: isUpgrade || !head.isKeepAlive || head.version.minor == 0) {
            case .begin: self.begin(head, context: context)
            case .drop: break
            case .close: context.channel.closeWithoutGoodbye()
            }
        case .body(let bytes):
            switch self.machine.receivedBody() {
            case .pass:
                self.heard = context.eventLoop.now
                if self.gathered.readableBytes == 0 { self.gathered = bytes } else { self.gathered.writeImmutableBuffer(bytes) }
            case .drop: self.dropped += bytes.readableBytes
            }
        case .end:
            switch self.machine.receivedEnd() {
            case .pass:
                self.timer?.cancel()
                self.passGathered()
                self.use(true)
                self.inbox?.end(.success(()))
                // The body is bounded now, and the end of the connection has to be noticed.
                self.resume()
            case .drop: break
            }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.passGathered()
        context.fireChannelReadComplete()
    }

    /// Passes the bytes of one read to the body's reader.
    private func passGathered() {
        guard self.gathered.readableBytes > 0 else { return }
        if self.inbox?.put(self.gathered) == false { self.isHeldUp = true }
        self.gathered = ByteBuffer()
    }

    private func begin(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        self.timer?.cancel()
        let route: DeviceRoute
        do throws(DeviceRoute.Fault) {
            route = try DeviceRoute(head.method, head.uri)
        } catch {
            self.answer(DeviceAnswer(error))
            return
        }
        let channel = context.channel
        let inbox = DataInbox(limit: LocalSendLimits.waitingBytes)
        self.inbox = inbox
        // Any other request counts once its body is whole, so that bodies that never end keep no places from others.
        if case .upload = route {
            self.use(true)
            Transport.read(channel, upTo: LocalSendLimits.uploadRead)
            self.heard = context.eventLoop.now
            self.watch(until: self.heard + LocalSendLimits.silentTime, context: context)
        } else {
            self.timer = context.eventLoop.scheduleTask(in: LocalSendLimits.bodyTime) { channel.closeWithoutGoodbye() }
        }
        let this = NIOLoopBound(self, eventLoop: context.eventLoop)
        let body = RequestBody(inbox: inbox) { channel.eventLoop.execute { this.value.resume() } }
        let length = head.headers.first(name: "content-length").map { Int($0) ?? .max }
        self.pass(DeviceRequest(route: route, sender: self.sender, length: length, body: body))
    }

    /// Fails the body of an upload that is silent. While its reader is behind, the sender cannot send.
    private func watch(until deadline: NIODeadline, context: ChannelHandlerContext) {
        let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.timer = context.eventLoop.scheduleTask(deadline: deadline) {
            let (this, context) = this.value
            if this.isHeldUp { this.heard = context.eventLoop.now }
            let next = this.heard + LocalSendLimits.silentTime
            guard next <= context.eventLoop.now else { return this.watch(until: next, context: context) }
            this.inbox?.end(.failure(Self.silent))
        }
    }

    /// Holds the read back while the reader of a body is behind, and after too many dropped bytes.
    func read(context: ChannelHandlerContext) {
        guard self.dropped < LocalSendLimits.droppedBytes else { return }
        if self.isHeldUp {
            self.wantsRead = true
        } else {
            context.read()
        }
    }

    /// Resumes reading when the reader has caught up.
    func resume() {
        self.isHeldUp = false
        guard self.wantsRead else { return }
        self.wantsRead = false
        self.context?.read()
    }

    // MARK: Answers

    /// Writes the answer to the current request.
    func answer(_ answer: DeviceAnswer) {
        switch self.machine.answered() {
        case .write(let closes):
            self.inbox?.end(.failure(Self.lost))
            self.inbox = nil
            self.gathered = ByteBuffer()
            self.resume()
            self.write(answer, closes: closes)
        case .drop: break
        }
    }

    private func write(_ answer: DeviceAnswer, closes: Bool) {
        guard let context = self.context else { return }
        self.timer?.cancel()
        self.use(false)
        context.write(self.wrapOutboundOut(.head(answer.head(closes: closes))), promise: nil)
        if let body = answer.body { context.write(self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        let channel = context.channel
        guard closes else {
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
            self.timer = context.eventLoop.scheduleTask(in: LocalSendLimits.headTime) { channel.closeWithoutGoodbye() }
            return
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        // Closing with unread input would reset the connection before the sender has read the answer.
        written.futureResult.whenComplete { _ in channel.close(mode: .output, promise: nil) }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: written)
        self.timer = context.eventLoop.scheduleTask(in: LocalSendLimits.lastAnswerTime) { channel.closeWithoutGoodbye() }
    }
}
