internal import Earshot
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// Answers what the HTTP parser refuses: 431 where the head is too large, 400 otherwise, as problems.
///
/// Hummingbird would answer every such error with an empty 400. Sits above the codec; once a request is under way its response cannot be
/// preceded any more, and the error goes on to the body's reader.
final class ParserErrorHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let requests: RequestCounts
    /// Requests whose response has not ended.
    private var requestsInProgress = 0
    private var hasAnswered = false

    init(requests: RequestCounts) { self.requests = requests }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.hasAnswered else { return }
        if case .head = self.unwrapInboundIn(data) { self.requestsInProgress += 1 }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = self.unwrapOutboundIn(data) { self.requestsInProgress -= 1 }
        context.write(data, promise: promise)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard self.requestsInProgress == 0 else {
            context.fireErrorCaught(error)
            return
        }
        guard !self.hasAnswered, context.channel.isActive else { return }
        self.hasAnswered = true
        let response = ProblemResponse.make(Self.problem(for: error))
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
