internal import Earshot
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// Answers what the HTTP parser refuses: 431 where the head is too large, 400 otherwise, as problems.
///
/// Hummingbird would answer every such error with an empty 400. Sits above the codec. Behind a request that has no response yet, the problem
/// is told after that; an error in a request's body goes on to the body's reader.
final class ParserErrorHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let requests: RequestCounts
    /// Requests whose response has not ended.
    private var requestsInProgress = 0
    /// The connection ends with the last request: what follows it is none (RFC 9112 section 9.6), whatever it is.
    private var isLast = false
    /// Some of the last request's body is still to come.
    private var isReadingBody = false
    /// What waits for the responses before it.
    private var problem: APIProblem?
    private var hasAnswered = false

    init(requests: RequestCounts) { self.requests = requests }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.hasAnswered else { return }
        switch self.unwrapInboundIn(data) {
        case .head(let head):
            self.requestsInProgress += 1
            self.isReadingBody = true
            self.isLast = head.headerFields[.connection] == "close"
        case .body: break
        case .end: self.isReadingBody = false
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = self.unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        self.requestsInProgress -= 1
        context.write(data, promise: promise)
        guard self.requestsInProgress == 0, let problem = self.problem else { return }
        self.problem = nil
        self.answer(problem, context: context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What is wrong with the socket is no affair of the parser's.
        guard error is HTTPParserError, !self.isReadingBody else { return context.fireErrorCaught(error) }
        guard !self.isLast else { return }
        let problem = Self.problem(for: error)
        if self.requestsInProgress > 0 { self.problem = problem } else { self.answer(problem, context: context) }
    }

    private func answer(_ problem: APIProblem, context: ChannelHandlerContext) {
        guard !self.hasAnswered, context.channel.isActive else { return }
        self.hasAnswered = true
        let response = ProblemResponse.make(problem)
        self.requests.count(response.head.status.code)
        context.write(self.wrapOutboundOut(.head(response.head)), promise: nil)
        context.write(self.wrapOutboundOut(.body(response.body)), promise: nil)
        let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            // Not at once: with unread bytes in the socket, closing would take the answer away from the client.
            let context = loopBound.value
            context.close(mode: .output, promise: nil)
            context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(500)) { context.close(promise: nil) }
        }
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: written)
    }

    private static func problem(for error: any Error) -> APIProblem {
        if case .headerOverflow? = error as? HTTPParserError {
            return APIProblem(
                .invalidParameter, "the request's head is too large; a head is at most 16 KiB and 100 fields",
                status: .requestHeaderFieldsTooLarge, closesConnection: true)
        }
        return APIProblem(.invalidParameter, "this is not an HTTP/1.1 request", closesConnection: true)
    }
}
