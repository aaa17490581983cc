internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/streams`: a request's body here becomes a response's body there.
struct StreamsRoutes: Sendable {
    /// The header of a content that says which stream it is.
    static let streamID: HTTPField.Name = {
        guard let name = HTTPField.Name("Earshot-Stream") else { preconditionFailure("Earshot-Stream is a token") }
        return name
    }()
    /// The longest that one may wait for the next stream by the API's clock, in seconds; without a number it waits for good.
    static let timeoutLimit: UInt64 = 366 * 86_400

    /// How long a client may take to end the connection behind the end of a stream: for as long it may still say that it could not keep
    /// what has come. One that reads on, or forgets to, has taken the stream.
    static let endTime: TimeAmount = .seconds(5)

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/streams", self.open),
            Route(.get, "/v1/streams") { _, _ in
                try .json(ControlAPI.StreamList(streams: await self.api.node.openStreams().map(ControlAPI.Stream.init)))
            },
            Route(.get, "/v1/streams/:id") { _, context in
                let id: StreamID = try context.identifier("a stream")
                return try .json(ControlAPI.Stream(try await self.api.node.stream(id)))
            },
            Route(.delete, "/v1/streams/:id") { _, context in
                let id: StreamID = try context.identifier("a stream")
                guard let aborted = try await self.api.node.removeStream(id) else { return .noContent }
                return try .json(ControlAPI.Stream(aborted))
            },
            Route(.get, "/v1/streams/next/content") { request, context in
                let query = try Query(request)
                let seconds = try query.number("timeout_seconds", 0...Self.timeoutLimit)
                // What a HEAD has taken would never be read.
                guard !context.isHead else { throw Self.noHead }
                let (name, peer) = (try query.text("name"), try query.text("from"))
                return try await self.content(context) {
                    try await self.api.node.acceptNextStream(name: name, from: peer, timeout: seconds.map { .seconds(Int64($0)) })
                }
            },
            Route(.get, "/v1/streams/:id/content") { _, context in
                let id: StreamID = try context.identifier("a stream")
                guard !context.isHead else { throw Self.noHead }
                return try await self.content(context) { try await self.api.node.acceptStream(id) }
            },
        ]
    }

    private static var noHead: APIProblem {
        APIProblem(.unsupported, "a stream can be taken only once, and so has no HEAD", status: .methodNotAllowed, fields: [.allow: "GET"])
    }

    /// The body is the stream; the answer comes when the far reader has taken everything, or why it will not.
    private func open(_ request: Request, _ context: APIContext) async throws -> Response {
        do {
            let query = try Query(request)
            let peers = query.all("to")
            guard let peer = peers.first else { throw APIProblem(.invalidParameter, "'to' is missing in the query; name the peer") }
            guard peers.count == 1 else { throw APIProblem(.invalidParameter, "a stream goes to one peer; open one to each") }
            guard let name = try query.text("name") else {
                throw APIProblem(.invalidParameter, "'name' is missing in the query; name the stream")
            }
            let stream = try await ClientPresence.required(on: context.channel) {
                try await self.api.node.openStream(to: peer, name: name, body: request.body)
            }
            return try .json(ControlAPI.Stream(stream))
        } catch {
            // Some of the body may be unread, and have no end.
            var problem = APIProblem(error)
            problem.closesConnection = true
            throw problem
        }
    }

    /// The answer begins when a stream has been accepted, and its body is that stream. Where the body breaks off the stream did.
    private func content(
        _ context: APIContext, _ accept: @escaping @Sendable () async throws -> StreamContent
    ) async throws -> Response {
        let channel = context.channel
        let end = InputEndHandler { channel.close(promise: nil) }
        try await channel.pipeline.addHandler(end, position: .first)
        let content: StreamContent
        do {
            content = try await ClientPresence.required(on: channel, accept)
        } catch {
            // The connection serves on, and whoever says nothing more on it still gets its answers.
            try? await channel.pipeline.removeHandler(end)
            throw error
        }
        let taken: EventLoopFuture<Void>
        do {
            taken = try await AnswerEndHandler.add(to: channel)
        } catch {
            content.abandon()
            throw error
        }
        // However the connection ends before, also where the body is never asked for.
        taken.whenFailure { _ in content.abandon() }
        let body = ResponseBody { writer in
            do {
                if let outlet = try await StreamOutlet.of(channel) { content.use(outlet) }
                pieces: while true {
                    switch try await content.step() {
                    case .bytes(let piece): try await writer.write(piece)
                    case .connection(let connection):
                        try await StreamOutlet.flush(channel)
                        await content.move(connection)
                    case .end: break pieces
                    }
                }
                try await writer.finish(nil)
                try await taken.get()
                // What the kernel has the client may still refuse, and then it says so before it ends the connection.
                try await end.clientEnds(channel, within: Self.endTime)
                try await content.finish()
                // As the answer's head has said: a client that reads to the connection's end is not to wait for one that is idle.
                channel.close(promise: nil)
            } catch {
                content.abandon()
                throw error
            }
        }
        return Response(
            status: .ok,
            headers: [
                .contentType: "application/octet-stream", .cacheControl: "no-store", .connection: "close",
                Self.streamID: content.stream.id.description,
            ], body: body)
    }
}
