internal import Earshot
internal import HTTPTypes
internal import NIOCore

/// A connection on the node's own event loop, on which small messages are sent one after the other: from the socket to the core and back
/// no thread wakes another.
///
/// It takes a request that ``PlainMessageRequest`` recognises where nothing follows it yet, and gives the connection away with the first
/// other one: what a route does, or many messages at once, could hold the node up.
final class MessageLaneHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Says on the event loop, which is the node's, what became of a message.
    private let submit: SingleMessageHandler.Submit
    private let idleTime: TimeAmount
    /// The socket, where it is given away; `nil` at the connection's end.
    private let end: EventLoopPromise<MovedConnections.Socket?>
    private var answers: SingleMessageAnswers
    private var bytes: ByteBuffer
    private var isAnswering = false
    /// The client says nothing more.
    private var isInputClosed = false
    private var isStopping = false
    private var isLeaving = false
    private var wantsRead = false
    private var lastAnswer = NIODeadline.distantPast
    private var idleTimer: Scheduled<Void>?

    init(
        answers: SingleMessageAnswers, unread: ByteBuffer, idleTime: TimeAmount, end: EventLoopPromise<MovedConnections.Socket?>,
        submit: @escaping SingleMessageHandler.Submit
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
        // Nothing is sent any more for a client that has gone.
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

    /// One timer for all requests: it looks when the last answer was.
    private func watchIdleness(context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.idleTimer = context.eventLoop.scheduleTask(deadline: self.lastAnswer + self.idleTime) {
            let (this, context) = loopBound.value
            let now = context.eventLoop.now
            if this.isAnswering { this.lastAnswer = now }
            guard this.lastAnswer + this.idleTime <= now else { return this.watchIdleness(context: context) }
            // The client reads none of its answers.
            guard !this.isLeaving else { return context.close(promise: nil) }
            // A route waits for the rest of a body for as long as it takes.
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

    /// A client that sends on is not read from while there is something of it that has to wait.
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
        // What it means that the rest will not come is for the parser to say.
        case .message, .incomplete, .other: return self.leave(withSocket: true, context: context)
        }
        self.readIfWanted(context: context)
    }

    private func readIfWanted(context: ChannelHandlerContext) {
        guard self.wantsRead else { return }
        self.wantsRead = false
        self.read(context: context)
    }

    /// Has the node send what is asked for; `false` where a route is to say what is wrong with it.
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
        context.writeAndFlush(self.wrapOutboundOut(self.answers.text(outcome, status: status)), promise: nil)
        guard self.bytes.readableBytes > 0 || self.isInputClosed || self.isStopping else { return }
        // Not at once: the node is still at work on this one.
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let (this, context) = loopBound.value
            this.goOn(context: context)
        }
    }

    /// Ends the channel once the kernel has all answers; its socket goes on elsewhere or not.
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
        // Is written when everything before it was.
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: written)
    }
}
