internal import Earshot
internal import EarshotCoding
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Logging
internal import NIOCore
internal import NIOHTTPTypes

/// Answers requests to send one small message where they arrive: without a task, and with one turn of the node in between. All others go on
/// to the routes.
///
/// What a program that sends one message after the other waits for is threads that wake each other; a task and its continuations would be
/// four more of these. Stands above the codec and the handlers that count requests, and below Hummingbird's.
final class SingleMessageHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// What has arrived while a message was being answered.
    private enum Arrival {
        case part(HTTPRequestPart)
        case event(Any)
        case error(any Error)
    }

    /// Hands a message to the node, which says on any thread what became of it.
    typealias Submit = @Sendable (MessageDraft, _ then: @escaping @Sendable (MessageBatch.Outcome) -> Void) -> Void

    private let submit: Submit
    private var machine = SingleMessageStateMachine()
    private var answers: SingleMessageAnswers
    /// At most what one read of the socket brings.
    private var arrivals = CircularBuffer<Arrival>()
    private var wantsRead = false
    private var isStopping = false

    init(requests: RequestCounts, logger: Logger, submit: @escaping Submit) {
        self.submit = submit
        self.answers = SingleMessageAnswers(requests: requests, logger: logger)
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.arrived(.part(self.unwrapInboundIn(data)), context: context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return self.arrived(.event(event), context: context) }
        // The message that is being answered is the last.
        self.isStopping = true
        guard !self.machine.isAnswering else { return }
        // One whose body is still coming is answered by a route.
        self.giveUp(context: context)
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Nothing is sent any more for a client that has gone.
        self.arrivals.removeAll()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { self.arrived(.error(error), context: context) }

    private func arrived(_ arrival: Arrival, context: ChannelHandlerContext) {
        guard !self.machine.isAnswering, self.arrivals.isEmpty else { return self.arrivals.append(arrival) }
        self.take(arrival, context: context)
    }

    private func take(_ arrival: Arrival, context: ChannelHandlerContext) {
        switch arrival {
        case .part(let part):
            switch self.machine.received(part) {
            case .forward: context.fireChannelRead(self.wrapInboundOut(part))
            case .keep: return
            case .answer(let body): self.send(body, context: context)
            }
        case .event(let event):
            self.giveUp(context: context)
            context.fireUserInboundEventTriggered(event)
        case .error(let error):
            self.giveUp(context: context)
            context.fireErrorCaught(error)
        }
    }

    private func giveUp(context: ChannelHandlerContext) {
        let parts = self.machine.giveUp()
        guard !parts.isEmpty else { return }
        for part in parts { context.fireChannelRead(self.wrapInboundOut(part)) }
        context.fireChannelReadComplete()
    }

    /// A client that sends on is not read from while there is something of it to keep, nor one that does not read answers from here: a route has
    /// its own measure of that.
    func read(context: ChannelHandlerContext) {
        guard self.arrivals.isEmpty, self.machine.isRouteAtWork || context.channel.isWritable else {
            self.wantsRead = true
            return
        }
        context.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, !self.machine.isAnswering { self.goOn(context: context) }
        context.fireChannelWritabilityChanged()
    }

    private func readIfWanted(context: ChannelHandlerContext) {
        guard self.wantsRead else { return }
        self.wantsRead = false
        self.read(context: context)
    }

    private func send(_ body: ByteBuffer, context: ChannelHandlerContext) {
        let draft: MessageDraft
        do {
            draft = try self.answers.draft(body)
        } catch {
            return self.answer(.failure(error), status: .ok, context: context)
        }
        let status = draft.successStatus
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        self.submit(draft) { outcome in
            eventLoop.execute {
                let (this, context) = loopBound.value
                this.answer(outcome.mapError(APIProblem.init), status: status, context: context)
                this.answered(context: context)
            }
        }
    }

    // MARK: Answers

    private func answer(_ outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status, context: ChannelHandlerContext) {
        let (head, body) = self.answers.answer(outcome, status: status)
        self.machine.answered()
        context.write(self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(body)), promise: nil)
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
    }

    private func answered(context: ChannelHandlerContext) {
        guard self.isStopping else { return self.goOn(context: context) }
        self.arrivals.removeAll()
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// What has arrived meanwhile has its turn.
    private func goOn(context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        let hadArrivals = !self.arrivals.isEmpty
        // For as long as the answers are read.
        while !self.machine.isAnswering, context.channel.isWritable, let arrival = self.arrivals.popFirst() {
            self.take(arrival, context: context)
        }
        if hadArrivals { context.fireChannelReadComplete() }
        self.readIfWanted(context: context)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch self.unwrapOutboundIn(data) {
        case .head(let head): self.machine.wroteHead(isLast: head.headerFields[.connection] == "close")
        case .body: break
        case .end: self.machine.wroteEnd()
        }
        context.write(data, promise: promise)
    }
}
