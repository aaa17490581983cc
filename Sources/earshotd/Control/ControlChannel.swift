internal import Earshot
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOPosix
internal import Synchronization

/// One connection to the control socket: who is there is asked once, then every request is answered on its behalf.
struct ControlChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let http: HTTP1Channel.Value
        /// `nil` where it went before the kernel could be asked who it was.
        let caller: Caller?
        /// What its first bytes decide: its socket, where it goes on as a ``MessageLaneHandler``'s.
        let start: EventLoopFuture<MovedConnections.Socket?>

        var channel: any Channel { self.http.channel }
    }

    /// What a request's head may take: far above curl's or any library's, far below what would hurt.
    private static let headLimits = HTTP1Channel.Configuration.DecoderConfiguration(
        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 16 * 1024, maxHeaderFieldCount: 100)
    /// How long an idle connection is kept: clients that poll reconnect at once on a local socket.
    private static let idleTimeout: TimeAmount = .seconds(60)

    private let configuration: HTTP1Channel.Configuration
    private let responder: RouterResponder<APIContext>
    private let policy: CallerPolicy
    private let requests: RequestCounts
    private let node: Node
    private let moved: MovedConnections

    init(
        responder: RouterResponder<APIContext>, policy: CallerPolicy, requests: RequestCounts, node: Node, moved: MovedConnections
    ) {
        self.node = node
        self.moved = moved
        self.responder = responder
        self.policy = policy
        self.requests = requests
        self.configuration = HTTP1Channel.Configuration(
            additionalChannelHandlers: [
                HeadAnswerHandler(), ParserErrorHandler(requests: requests), IdleConnectionHandler(time: Self.idleTimeout),
            ],
            httpDecoderConfiguration: Self.headLimits)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        self.setup(channel, logger) { pipeline in
            let start = pipeline.eventLoop.makePromise(of: MovedConnections.Socket?.self)
            try pipeline.addHandler(ConnectionStartHandler(moved: self.moved, decision: start), position: .first)
            return start.futureResult
        }
    }

    /// The pipeline of a connection whose requests are HTTP's, with what an admitted caller's has before all that.
    private func setup(
        _ channel: any Channel, _ logger: Logger,
        _ begin: @escaping @Sendable (ChannelPipeline.SynchronousOperations) throws -> EventLoopFuture<MovedConnections.Socket?>
    ) -> EventLoopFuture<Value> {
        // Uploads come in larger pieces than the default's; small requests never make a buffer grow.
        let allocator = AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 8192, maximum: 256 * 1024)
        return channel.setOption(.recvAllocator, value: allocator).flatMap {
            HTTP1Channel(responder: { _, _, _ in }, configuration: self.configuration).setup(channel: channel, logger: logger)
        }.flatMapThrowing { [policy] http in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(
                LastRequestHandler(), position: .after(pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)))
            try pipeline.addHandler(OrderlyCloseHandler(), position: .first)
            let caller = try? Caller.of(channel)
            // A caller that is refused hears so from the routes' side.
            guard let caller, policy.admits(caller) else {
                return Value(http: http, caller: caller, start: channel.eventLoop.makeSucceededFuture(nil))
            }
            return Value(http: http, caller: caller, start: try begin(pipeline))
        }
    }

    func handle(value: Value, logger: Logger) async {
        guard let socket = await Self.ending(value.channel, with: value.start) else { return await self.serve(value, logger) }
        // The channel is closed already; its value has to be used all the same.
        try? await value.http.executeThenClose { _, _ in }
        defer { self.moved.leave() }
        do {
            guard let socket = try await self.serveMessages(socket, logger) else { return }
            let value = try await socket.channel(on: MultiThreadedEventLoopGroup.singleton) { channel in
                self.setup(channel, logger) { pipeline in
                    try pipeline.addHandler(UnreadBytesHandler(socket.unread), position: .first)
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
            }
            self.moved.add(value.channel)
            await self.serve(value, logger)
        } catch {
            logger.debug("a connection could not move", metadata: ["error": "\(error)"])
        }
    }

    /// Answers messages on the node's event loop; the socket, where the connection is to go on elsewhere.
    private func serveMessages(_ socket: MovedConnections.Socket, _ logger: Logger) async throws -> MovedConnections.Socket? {
        let (channel, end) = try await socket.channel(on: self.node.eventLoop) { [node, requests] channel in
            channel.eventLoop.makeCompletedFuture {
                let end = channel.eventLoop.makePromise(of: MovedConnections.Socket?.self)
                let handler = MessageLaneHandler(
                    answers: MessageLaneAnswers(requests: requests, logger: logger), unread: socket.unread, idleTime: Self.idleTimeout,
                    end: end
                ) { node.submit($0, then: $1) }
                try channel.pipeline.syncOperations.addHandler(handler)
                return (channel, end.futureResult)
            }
        }
        self.moved.add(channel)
        return await Self.ending(channel, with: end)
    }

    /// Waits for what becomes of a connection, which a cancelled task ends.
    private static func ending(
        _ channel: any Channel, with end: EventLoopFuture<MovedConnections.Socket?>
    ) async -> MovedConnections.Socket? {
        await withTaskCancellationHandler {
            (try? await end.get()) ?? nil
        } onCancel: {
            channel.close(promise: nil)
        }
    }

    /// Answers HTTP requests to the connection's end.
    private func serve(_ value: Value, _ logger: Logger) async {
        guard let caller = value.caller else {
            try? await value.channel.close()
            return
        }
        let isAdmitted = self.policy.admits(caller)
        if !isAdmitted {
            logger.warning("a caller was refused", metadata: ["uid": "\(caller.userID)"])
        }
        let lastAnswer = LastAnswer()
        let channel = HTTP1Channel(
            responder: { request, writer, channel in
                // It comes behind the last one: its client has been told to ask again elsewhere.
                guard !lastAnswer.isWritten else { return }
                let context = APIContext(source: .init(channel: channel, caller: caller, isHead: request.method == .head, logger: logger))
                let isLast = try await self.respond(to: request, context, isAdmitted: isAdmitted, writer)
                if isLast { lastAnswer.written() }
            }, configuration: self.configuration)
        await channel.handle(value: value.http, logger: logger)
    }

    /// Answers; whether the connection ends with that.
    @concurrent private func respond(
        to request: Request, _ context: APIContext, isAdmitted: Bool, _ writer: consuming ResponseWriter
    ) async throws -> Bool {
        let response: Response
        do {
            guard isAdmitted else {
                throw APIProblem(
                    .forbidden, "user \(context.caller.userID) may not use this socket; run as the daemon's user or join its control group",
                    closesConnection: true)
            }
            if let fault = RequestRules.fault(request.head) { throw fault }
            if request.headers[.expect]?.lowercased() == "100-continue" {
                try await writer.writeInformationalHead(HTTPResponse(status: .continue))
            }
            response = try await self.responder.respond(to: Self.routed(request), context: context)
        } catch {
            return try await self.write(Self.problem(for: error, request, context), request, context, writer)
        }
        self.requests.count(response.status.code)
        try await writer.write(response: response.head, body: request.method == .head ? .init() : response.body)
        return false
    }

    /// HEAD is answered as GET is, less the body (RFC 9110 section 9.3.2).
    private static func routed(_ request: Request) -> Request {
        guard request.method == .head else { return request }
        var head = request.head
        head.method = .get
        return Request(head: head, body: request.body)
    }

    private static func problem(for error: any Error, _ request: Request, _ context: APIContext) -> APIProblem {
        let problem = APIProblem(error)
        if problem.status == .internalServerError {
            context.logger.error(
                "a request failed", metadata: ["method": "\(request.method)", "path": "\(request.uri.path)", "error": "\(error)"])
        }
        return problem
    }

    @concurrent private func write(
        _ problem: APIProblem, _ request: Request, _ context: APIContext, _ writer: consuming ResponseWriter
    ) async throws -> Bool {
        var problem = problem
        let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
        // Without a body there is nothing to be rid of, and the connection may serve on.
        problem.closesConnection = problem.closesConnection && hasBody
        let (head, body) = ProblemResponse.make(problem)
        self.requests.count(head.status.code)
        try await writer.write(response: head, body: request.method == .head ? .init() : .init(byteBuffer: body))
        guard problem.closesConnection else { return false }
        // The rest of a body that is not wanted is read for a moment, so that the client sees the answer and not a reset.
        let channel = context.channel
        channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
        return true
    }
}

/// Whether a connection's last answer is written: no request behind it is served (RFC 9112 section 9.6).
private final class LastAnswer: Sendable {
    private let state = Mutex(false)

    var isWritten: Bool { self.state.withLock { $0 } }

    func written() { self.state.withLock { $0 = true } }
}
