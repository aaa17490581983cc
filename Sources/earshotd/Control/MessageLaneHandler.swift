internal import Earshot
internal import HTTPTypes
internal import NIOCore

/// The message lane: a connection on the node's own event loop, on which a client sends one small message after the other. No thread wakes
/// another on the way from the socket to the core and back.
///
/// The lane takes a request that ``PlainMessageRequest`` recognises, if no byte follows the request yet. With the first other request the
/// connection moves to the routes for good, because a route, or many messages at once, could hold the node up.
final class MessageLaneHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Hands a message to the node, which reports the outcome on its event loop.
    typealias Submit = @Sendable (MessageDraft, _ then: @escaping @Sendable (MessageBatch.Outcome) -> Void) -> Void

    private let submit: Submit
    private let idleTime: TimeAmount
    /// Succeeds with the socket if the connection moves to the routes, and with `nil` if the connection ends.
    private let end: EventLoopPromise<MovedConnections.Socket?>
    private var answers: MessageLaneAnswers
    private var bytes: ByteBuffer
    private var isAnswering = false
    /// Whether the client has closed its sending half.
    private var isInputClosed = false
    private var isStopping = false
    private var isLeaving = false
    private var wantsRead = false
    private var lastAnswer = NIODeadline.distantPast
    private var idleTimer: Scheduled<Void>?

    init(
        answers: MessageLaneAnswers, unread: ByteBuffer, idleTime: TimeAmount, end: EventLoopPromise<MovedConnections.Socket?>,
        submit: @escaping Submit
    ) {
        self.answers = answers
        self.bytes = unread
        self.idleTime = idleTime
        self.end = end
        self.submit = submit
    }

    // MARK: The connection

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        self.lastAnswer = context.eventLoop.now
        self.watchIdleness(context: context)
        self.goOn(context: context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Requests of a client that has gone are dropped.
        self.isLeaving = true
        self.idleTimer?.cancel()
        self.end.succeed(nil)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.end.succeed(nil) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed: self.isInputClosed = true
        case is ChannelShouldQuiesceEvent:
            guard !self.isLeaving else { return context.close(promise: nil) }
            self.isStopping = true
        default: return context.fireUserInboundEventTriggered(event)
        }
        self.goOn(context: context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Starts the idle timer. One timer serves all requests: when the timer fires, it compares the time with that of the last answer.
    private func watchIdleness(context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.idleTimer = context.eventLoop.scheduleTask(deadline: self.lastAnswer + self.idleTime) {
            let (this, context) = loopBound.value
            let now = context.eventLoop.now
            if this.isAnswering { this.lastAnswer = now }
            guard this.lastAnswer + this.idleTime <= now else { return this.watchIdleness(context: context) }
            // The client does not read its answers.
            guard !this.isLeaving else { return context.close(promise: nil) }
            // A route waits for the rest of a body without a time limit.
            this.leave(withSocket: this.bytes.readableBytes > 0, context: context)
            guard context.channel.isActive else { return }
            this.lastAnswer = now
            this.watchIdleness(context: context)
        }
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        if self.bytes.readableBytes == 0 { self.bytes = bytes } else { self.bytes.writeBuffer(&bytes) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { self.goOn(context: context) }

    /// Defers the read while bytes of a later request are held, so that a client that keeps sending is held back.
    func read(context: ChannelHandlerContext) {
        guard !self.isLeaving, !self.isAnswering || self.bytes.readableBytes == 0 else {
            self.wantsRead = true
            return
        }
        context.read()
    }

    private func goOn(context: ChannelHandlerContext) {
        guard !self.isAnswering, !self.isLeaving, context.channel.isActive else { return }
        guard !self.isStopping, self.bytes.readableBytes > 0 else {
            if self.isStopping || self.isInputClosed { self.leave(withSocket: false, context: context) }
            return self.readIfWanted(context: context)
        }
        switch self.bytes.withUnsafeReadableBytes(PlainMessageRequest.find) {
        case .message(let head, let body) where self.bytes.readableBytes == head + body:
            guard context.channel.isWritable, self.take(head: head, body: body, context: context) else {
                return self.leave(withSocket: true, context: context)
            }
        case .message(let head, let body) where self.bytes.readableBytes < head + body && !self.isInputClosed: break
        case .incomplete where !self.isInputClosed: break
        // The HTTP parser reports a request that is cut off.
        case .message, .incomplete, .other: return self.leave(withSocket: true, context: context)
        }
        self.readIfWanted(context: context)
    }

    private func readIfWanted(context: ChannelHandlerContext) {
        guard self.wantsRead else { return }
        self.wantsRead = false
        self.read(context: context)
    }

    /// Hands a message to the node. Returns `false` if the body describes no message; a route reports the fault.
    private func take(head: Int, body: Int, context: ChannelHandlerContext) -> Bool {
        guard let text = self.bytes.getSlice(at: self.bytes.readerIndex + head, length: body), let draft = try? self.answers.draft(text)
        else { return false }
        self.bytes = ByteBuffer()
        self.isAnswering = true
        let status = draft.successStatus
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.submit(draft) { outcome in
            let (this, context) = loopBound.value
            this.answer(outcome.mapError(APIProblem.init), status: status, context: context)
        }
        return true
    }

    private func answer(_ outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status, context: ChannelHandlerContext) {
        self.isAnswering = false
        self.lastAnswer = context.eventLoop.now
        guard context.channel.isActive else { return }
        context.writeAndFlush(self.wrapOutboundOut(self.answers.bytes(outcome, status: status)), promise: nil)
        guard self.bytes.readableBytes > 0 || self.isInputClosed || self.isStopping else { return }
        // The node is still inside its call to this handler, and must not be handed the next message yet.
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let (this, context) = loopBound.value
            this.goOn(context: context)
        }
    }

    /// Closes the channel once the kernel has taken all answers, and hands its socket over to the routes or not.
    private func leave(withSocket: Bool, context: ChannelHandlerContext) {
        self.isLeaving = true
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            if withSocket, context.channel.isActive {
                this.end.succeed(MovedConnections.Socket(of: context.channel, unread: this.bytes))
            }
            context.close(promise: nil)
        }
        // An empty write completes after all earlier writes.
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: written)
    }
}
