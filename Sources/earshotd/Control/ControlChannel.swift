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

/// A client's connection to the control socket. The kernel is asked for the caller once; every request is answered on the caller's behalf.
struct ControlChannel: ServerChildChannel {
    /// A connection with its pipeline. A server that stops drops the connections that it has accepted and not handed over yet. Such a
    /// connection ends here, because NIO stops the process if the writer of an async channel is dropped without an end.
    final class Value: ServerChildChannelValue {
        let channel: any Channel
        /// The caller; `nil` if the client disconnected before the kernel was asked.
        let caller: Caller?
        /// The socket of a connection that moves to the message lane, which its first bytes decide.
        let start: EventLoopFuture<MovedConnections.Socket?>
        /// The async channel until ``take()`` returns it.
        private let http: Mutex<HTTP1Channel.Value?>

        init(http: HTTP1Channel.Value, caller: Caller?, start: EventLoopFuture<MovedConnections.Socket?>) {
            self.channel = http.channel
            self.caller = caller
            self.start = start
            self.http = Mutex(http)
        }

        deinit {
            guard let http = self.take() else { return }
            Task { try? await http.executeThenClose { _, _ in } }
        }

        /// Returns the async channel, which the caller executes, at the first call.
        func take() -> HTTP1Channel.Value? { self.http.withLock { $0.take() } }
    }

    /// The limits of a request's head, which are far above the needs of curl and of any library.
    private static let headLimits = HTTP1Channel.Configuration.DecoderConfiguration(
        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 16 * 1024, maxHeaderFieldCount: 100)
    /// The time after which an idle connection is closed: a client that polls reconnects at once to a local socket.
    private static let idleTime: TimeAmount = .seconds(60)

    /// The time for which the rest of a refused request's body is read.
    private static let unwantedBodyTime: TimeAmount = .seconds(1)

    private let configuration: HTTP1Channel.Configuration
    private let responder: RouterResponder<APIContext>
    private let policy: CallerPolicy
    private let requests: RequestCounts
    private let node: Node
    private let moved: MovedConnections

    init(api: ControlAPIServices, policy: CallerPolicy, moved: MovedConnections) {
        self.responder = ControlRouter.build(ControlRouter.routes(api)).buildResponder()
        self.policy = policy
        self.requests = api.requests
        self.node = api.node
        self.moved = moved
        self.configuration = HTTP1Channel.Configuration(httpDecoderConfiguration: Self.headLimits)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        self.setup(channel, logger) { pipeline in
            let start = pipeline.eventLoop.makePromise(of: MovedConnections.Socket?.self)
            try pipeline.addHandler(ConnectionStartHandler(moved: self.moved, decision: start), position: .first)
            return start.futureResult
        }
    }

    /// Builds the pipeline of a connection that the routes serve. If the caller is admitted, `begin` adds to its front.
    private func setup(
        _ channel: any Channel, _ logger: Logger,
        _ begin: @escaping @Sendable (ChannelPipeline.SynchronousOperations) throws -> EventLoopFuture<MovedConnections.Socket?>
    ) -> EventLoopFuture<Value> {
        // Uploads arrive in larger pieces than the default size. Small requests do not make the buffer grow.
        let allocator = AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 8192, maximum: 256 * 1024)
        return channel.setOption(.recvAllocator, value: allocator).flatMap {
            HTTP1Channel(responder: { _, _, _ in }, configuration: self.configuration).setup(channel: channel, logger: logger)
        }.flatMapThrowing { [policy, requests] http in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(
                ControlConnectionHandler(requests: requests, idleTime: Self.idleTime),
                position: .after(pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)))
            try pipeline.addHandler(OrderlyCloseHandler(), position: .first)
            let caller = try? Caller.of(channel)
            // Requests of other callers are refused by `respond`.
            guard let caller, policy.admits(caller) else {
                return Value(http: http, caller: caller, start: channel.eventLoop.makeSucceededFuture(nil))
            }
            return Value(http: http, caller: caller, start: try begin(pipeline))
        }
    }

    func handle(value: Value, logger: Logger) async {
        guard let socket = await Self.ending(value.channel, with: value.start) else { return await self.serve(value, logger) }
        // The channel is closed already, but an async channel has to be executed before it is released.
        try? await value.take()?.executeThenClose { _, _ in }
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

    /// Serves the message lane. Returns the socket if the connection moves to the routes.
    private func serveMessages(_ socket: MovedConnections.Socket, _ logger: Logger) async throws -> MovedConnections.Socket? {
        let (channel, end) = try await socket.channel(on: self.node.eventLoop) { [node, requests] channel in
            channel.eventLoop.makeCompletedFuture {
                let end = channel.eventLoop.makePromise(of: MovedConnections.Socket?.self)
                let handler = MessageLaneHandler(
                    answers: MessageLaneAnswers(requests: requests, logger: logger), unread: socket.unread, idleTime: Self.idleTime,
                    end: end
                ) { node.submit($0, then: $1) }
                try channel.pipeline.syncOperations.addHandler(handler)
                return (channel, end.futureResult)
            }
        }
        self.moved.add(channel)
        return await Self.ending(channel, with: end)
    }

    /// Awaits the end of a connection's stay on a channel. A cancelled task closes the channel.
    private static func ending(
        _ channel: any Channel, with end: EventLoopFuture<MovedConnections.Socket?>
    ) async -> MovedConnections.Socket? {
        await withTaskCancellationHandler {
            (try? await end.get()) ?? nil
        } onCancel: {
            channel.close(promise: nil)
        }
    }

    /// Answers requests until the connection ends.
    private func serve(_ value: Value, _ logger: Logger) async {
        guard let caller = value.caller, let http = value.take() else { return }
        let isAdmitted = self.policy.admits(caller)
        if !isAdmitted {
            logger.warning("a caller was refused", metadata: ["uid": "\(caller.userID)"])
        }
        let channel = HTTP1Channel(
            responder: { request, writer, channel in
                let context = APIContext(
                    source: .init(
                        channel: channel, caller: caller, isHead: request.method == .head, moved: self.moved, logger: logger))
                try await self.respond(to: request, context, isAdmitted: isAdmitted, writer)
            }, configuration: self.configuration)
        await channel.handle(value: http, logger: logger)
    }

    @concurrent private func respond(
        to request: Request, _ context: APIContext, isAdmitted: Bool, _ writer: consuming ResponseWriter
    ) async throws {
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
        } catch is DescriptorConnection.Taken {
            return self.requests.count(HTTPResponse.Status.switchingProtocols.code)
        } catch {
            return try await self.write(Self.problem(for: error, request, context), request, context, writer)
        }
        self.requests.count(response.status.code)
        try await writer.write(response: response.head, body: request.method == .head ? .init() : response.body)
    }

    /// Returns the request for the router, which answers a HEAD as a GET; the body is left out later (RFC 9110 section 9.3.2).
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
    ) async throws {
        var problem = problem
        let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
        // Without a body, no unread bytes remain and the connection can be used again.
        problem.closesConnection = problem.closesConnection && hasBody
        let (head, body) = ProblemResponse.make(problem)
        self.requests.count(head.status.code)
        try await writer.write(response: head, body: request.method == .head ? .init() : .init(byteBuffer: body))
        guard problem.closesConnection else { return }
        // The rest of the refused body is read for a moment, so that the client sees the answer and not a reset.
        let channel = context.channel
        channel.eventLoop.scheduleTask(in: Self.unwantedBodyTime) { channel.close(promise: nil) }
    }
}
