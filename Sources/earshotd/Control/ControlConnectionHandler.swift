internal import Earshot
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

/// Stands between the HTTP parser of a client's connection and the routes, and executes the decisions of ``ControlConnectionStateMachine``.
///
/// The handler closes a connection that has had no request for a while. Hummingbird's own timeout also closes a connection whose request's body
/// pauses, and a stream pauses for as long as its writer or reader likes. The handler answers the parser's errors as problems, which
/// Hummingbird would answer with an empty 400. It sits below the conversion to Swift's HTTP types, where a request's version is known.
final class ControlConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The time a client has to read the answer to a parser error.
    static let refusalTime: TimeAmount = .milliseconds(500)

    private enum Arrival {
        case part(HTTPServerRequestPart)
        case error(any Error)
        case event(Any)
    }

    private let requests: RequestCounts
    private let idleTime: TimeAmount
    private var machine = ControlConnectionStateMachine()
    /// Arrivals that are held: as much as one read of the socket brings.
    private var arrivals = CircularBuffer<Arrival>()
    /// Whether a read waits until no arrival is held.
    private var wantsRead = false
    private var idleTimer: Scheduled<Void>?
    /// Awaits the end of the answer that is being written.
    private var sent: EventLoopPromise<Void>?

    init(requests: RequestCounts, idleTime: TimeAmount) {
        self.requests = requests
        self.idleTime = idleTime
    }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) { self.startIdleTimer(context: context) }

    func handlerRemoved(context: ChannelHandlerContext) { self.idleTimer?.cancel() }

    /// The handler is added before its channel is active.
    func channelActive(context: ChannelHandlerContext) {
        self.startIdleTimer(context: context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Requests of a client that has gone are dropped.
        self.arrivals.removeAll()
        self.idleTimer?.cancel()
        context.fireChannelInactive()
    }

    private func startIdleTimer(context: ChannelHandlerContext) {
        self.idleTimer?.cancel()
        guard context.channel.isActive else { return }
        let channel = context.channel
        self.idleTimer = context.eventLoop.scheduleTask(in: self.idleTime) { channel.close(promise: nil) }
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.arrived(.part(self.unwrapInboundIn(data)), context: context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.arrived(.error(error), context: context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        // Requests that arrived before these events are answered first.
        case ChannelEvent.inputClosed, is ChannelShouldQuiesceEvent: self.arrived(.event(event), context: context)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// Defers the read while arrivals are held, so that a client that keeps sending is held back.
    func read(context: ChannelHandlerContext) {
        guard self.arrivals.isEmpty else {
            self.wantsRead = true
            return
        }
        if self.machine.readsSocket { context.read() }
    }

    private func arrived(_ arrival: Arrival, context: ChannelHandlerContext) {
        guard self.arrivals.isEmpty, !self.machine.holdsArrivals else { return self.arrivals.append(arrival) }
        self.take(arrival, context: context)
    }

    private func takeHeldArrivals(context: ChannelHandlerContext) {
        guard !self.arrivals.isEmpty else { return }
        while !self.machine.holdsArrivals, let arrival = self.arrivals.popFirst() { self.take(arrival, context: context) }
        context.fireChannelReadComplete()
        guard self.wantsRead else { return }
        self.wantsRead = false
        self.read(context: context)
    }

    private func take(_ arrival: Arrival, context: ChannelHandlerContext) {
        switch arrival {
        case .part(let part):
            switch self.machine.received(part) {
            case .begin(let head):
                self.idleTimer?.cancel()
                context.fireChannelRead(self.wrapInboundOut(.head(head)))
            case .forward: context.fireChannelRead(self.wrapInboundOut(part))
            case .discard: return
            }
        // The decoder reports bytes that arrive behind its first error as another error.
        case .error(let error) where error is HTTPParserError || error is ByteToMessageDecoderError:
            switch self.machine.parserFailed() {
            case .forward: context.fireErrorCaught(error)
            case .refuse: self.refuse(error, context: context)
            case .discard: return
            }
        case .error(let error): context.fireErrorCaught(error)
        case .event(let event): context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Answers

    /// Returns a future that succeeds when the socket has taken the end of the answer being written, and fails if the connection ends first.
    /// The writer that Hummingbird provides reports only that there is room for more.
    ///
    /// A client that has everything closes its connection at once. The same event loop sees that later, so that at the connection's end the
    /// future tells for sure whether the answer was sent whole.
    static func answerSent(on channel: any Channel) async throws -> EventLoopFuture<Void> {
        try await channel.eventLoop.submit {
            let handler = try channel.pipeline.syncOperations.handler(type: Self.self)
            let sent = channel.eventLoop.makePromise(of: Void.self)
            channel.closeFuture.whenComplete { _ in sent.fail(ChannelError.ioOnClosedChannel) }
            handler.sent = sent
            return sent.futureResult
        }.get()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let part = self.unwrapOutboundIn(data)
        let answer = self.wrapOutboundOut(self.machine.answered(part))
        guard case .end = part else { return context.write(answer, promise: promise) }
        let written = promise ?? context.eventLoop.makePromise()
        if let sent = self.sent { written.futureResult.cascade(to: sent) }
        self.sent = nil
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            switch this.machine.answerSent() {
            case .startIdleTimer: this.startIdleTimer(context: context)
            case .wait: return
            }
        }
        context.write(answer, promise: written)
        self.takeHeldArrivals(context: context)
    }

    private func refuse(_ error: any Error, context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        let (head, body) = ProblemResponse.make(Self.problem(for: error))
        self.requests.count(head.status.code)
        let status = HTTPResponseStatus(statusCode: head.status.code, reasonPhrase: head.status.reasonPhrase)
        let fields = HTTPHeaders(head.headerFields.map { ($0.name.rawName, $0.value) })
        context.write(self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: fields))), promise: nil)
        context.write(self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            // With unread bytes in the socket, an immediate close would take the answer away from the client.
            let context = loopBound.value
            context.close(mode: .output, promise: nil)
            context.eventLoop.assumeIsolated().scheduleTask(in: Self.refusalTime) { context.close(promise: nil) }
        }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: written)
    }

    /// 431 if the head is too large, else 400.
    private static func problem(for error: any Error) -> APIProblem {
        if case .headerOverflow? = error as? HTTPParserError {
            return APIProblem(
                .invalidParameter, "the request's head is too large; a head is at most 16 KiB and 100 fields",
                status: .requestHeaderFieldsTooLarge, closesConnection: true)
        }
        return APIProblem(.invalidParameter, "this is not an HTTP/1.1 request", closesConnection: true)
    }
}
