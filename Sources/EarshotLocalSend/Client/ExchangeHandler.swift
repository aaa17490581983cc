import Earshot
import EarshotCore
import EarshotWaiting
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// The last handler of a connection to a device. It performs the actions of ``ExchangeStateMachine``, and bounds the time of the handshake,
/// of an upload's silence, and of the answer.
final class ExchangeHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let proof: DeviceProof
    /// Set when the request can be sent, or cannot.
    private let ready: OneShot<DeviceFailure?>
    private let answer: OneShot<Result<ExchangeAnswer, DeviceFailure>>
    private var machine = ExchangeStateMachine()
    private var timer: Scheduled<Void>?

    init(proof: DeviceProof, ready: OneShot<DeviceFailure?>, answer: OneShot<Result<ExchangeAnswer, DeviceFailure>>) {
        self.proof = proof
        self.ready = ready
        self.answer = answer
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.limit(LocalSendLimits.handshakeTime + TimeAmount(EarshotLimits.connectTime), context: context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.timer?.cancel()
        self.perform(self.machine.ended("the connection is closed"), context: context)
    }

    /// Bounds the time of the current phase, instead of the bound before; `nil` for no bound.
    private func limit(_ time: TimeAmount?, context: ChannelHandlerContext) {
        self.timer?.cancel()
        guard let time else { return self.timer = nil }
        let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.timer = context.eventLoop.scheduleTask(in: time) {
            let (this, context) = this.value
            this.perform(this.machine.ended("the device does not answer"), context: context)
        }
    }

    // MARK: The request

    /// Sends the request's head, and its body if that is given. `time` is the time for the answer.
    func send(_ head: HTTPRequestHead, body: ByteBuffer?, answerTime: TimeAmount?, context: ChannelHandlerContext) {
        self.limit(answerTime, context: context)
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        if let body {
            self.machine.endedBody()
            context.write(self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.write(self.wrapOutboundOut(.end(nil)), promise: nil)
        }
        context.flush()
    }

    /// Sends a piece of an upload. `taken` succeeds when the socket has taken it. The device may answer as soon as it has the last piece.
    func send(_ piece: ByteBuffer, isLast: Bool, taken: EventLoopPromise<Void>, context: ChannelHandlerContext) {
        if isLast { self.machine.endedBody() } else { self.machine.beganBody() }
        self.limit(LocalSendLimits.silentTime, context: context)
        context.writeAndFlush(self.wrapOutboundOut(.body(.byteBuffer(piece))), promise: taken)
    }

    /// Ends the request of an upload.
    func sendEnd(context: ChannelHandlerContext) {
        self.machine.endedBody()
        self.limit(LocalSendLimits.uploadAnswerTime, context: context)
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
    }

    // MARK: The answer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted = event {
            HandshakeGate.open(context.pipeline.syncOperations)
            self.perform(self.machine.shookHands(), context: context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.perform(self.machine.received(self.unwrapInboundIn(data)), context: context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is HTTPParserError || error is ByteToMessageDecoderError {
            // A connection that ends within an answer is lost.
            if case .invalidEOFState? = error as? HTTPParserError { return }
            self.perform(self.machine.failed("the answer is not HTTP"), context: context)
        } else if error is AnswerBound.Exceeded {
            self.perform(self.machine.failed("the answer is too long"), context: context)
        } else {
            self.perform(self.machine.ended(DeviceClient.reason(error)), context: context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.perform(self.machine.ended("the device has closed the connection"), context: context)
        context.fireChannelInactive()
    }

    private func perform(_ action: ExchangeStateMachine.Action, context: ChannelHandlerContext) {
        switch action {
        case .none: return
        case .ready:
            self.limit(nil, context: context)
            self.ready.settle(nil)
        case .finish(let answer):
            self.timer?.cancel()
            self.ready.settle(.unreachable("the device answered too early"))
            self.answer.settle(.success(answer))
            context.channel.closeWithoutGoodbye()
        case .fail(let failure):
            self.timer?.cancel()
            let failure = self.proof.isMismatch ? .identityMismatch : failure
            self.ready.settle(failure)
            self.answer.settle(.failure(failure))
            context.channel.closeWithoutGoodbye()
        }
    }
}
