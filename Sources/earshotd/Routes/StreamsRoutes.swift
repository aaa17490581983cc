internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/streams`: the body of a request here becomes the body of a response at the receiver.
struct StreamsRoutes: Sendable {
    /// The header of a stream's content that names the stream.
    static let streamID: HTTPField.Name = {
        guard let name = HTTPField.Name("Earshot-Stream") else { preconditionFailure("Earshot-Stream is a token") }
        return name
    }()
    /// The longest wait for the next stream that a caller may ask for, in seconds. Without a number the wait has no limit.
    static let timeoutLimit: UInt64 = 366 * 86_400

    /// The time in which a client may close the connection after the end of a stream. Until then, the client can still report by a reset that
    /// it could not keep the content. A client that leaves the connection open has taken the stream.
    static let endTime: TimeAmount = .seconds(5)

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/streams", self.open),
            Route(.post, "/v1/streams/descriptor", self.openDescriptor),
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
                // A HEAD would take a stream that nobody reads.
                guard !context.isHead else { throw Self.noHead }
                let (name, peer) = (try query.text("name"), try query.text("from"))
                return try await self.content(request, context) {
                    try await self.api.node.acceptNextStream(name: name, from: peer, timeout: seconds.map { .seconds(Int64($0)) })
                }
            },
            Route(.get, "/v1/streams/:id/content") { request, context in
                let id: StreamID = try context.identifier("a stream")
                guard !context.isHead else { throw Self.noHead }
                return try await self.content(request, context) { try await self.api.node.acceptStream(id) }
            },
        ]
    }

    private static var noHead: APIProblem {
        APIProblem(.unsupported, "a stream can be taken only once, and so has no HEAD", status: .methodNotAllowed, fields: [.allow: "GET"])
    }

    private static func parameters(_ request: Request) throws -> (peer: String, name: String) {
        let query = try Query(request)
        let peers = query.all("to")
        guard let peer = peers.first else { throw APIProblem(.invalidParameter, "'to' is missing in the query; name the peer") }
        guard peers.count == 1 else { throw APIProblem(.invalidParameter, "a stream goes to one peer; open one to each") }
        guard let name = try query.text("name") else {
            throw APIProblem(.invalidParameter, "'name' is missing in the query; name the stream")
        }
        return (peer, name)
    }

    /// Opens a stream with the bytes of the caller's descriptor as its content. An older daemon would take such a `POST /v1/streams` for an
    /// empty stream, and knows no such path.
    private func openDescriptor(_ request: Request, _ context: APIContext) async throws -> Response {
        guard DescriptorConnection.isWanted(by: request.head) else {
            throw APIProblem(
                .unsupported, "a descriptor is passed after Upgrade: \(ControlAPI.descriptorProtocol)", status: .upgradeRequired,
                fields: DescriptorConnection.fields, closesConnection: true)
        }
        try DescriptorConnection.requireNoBody(request)
        let (peer, name) = try Self.parameters(request)
        let node = self.api.node
        try await DescriptorConnection.receive(context, subject: "the stream's input", for: .reading) { file, _ in
            let stream = try await node.openStream(to: peer, name: name, from: try await .forStream(file))
            return ControlAPI.DescriptorLine(stream: ControlAPI.Stream(stream))
        }
    }

    /// Opens a stream with the request's body as its content. The answer is written when the peer's reader has taken everything, or has the
    /// reason why it did not.
    private func open(_ request: Request, _ context: APIContext) async throws -> Response {
        do {
            let (peer, name) = try Self.parameters(request)
            let stream = try await ClientPresence.required(on: context.channel) {
                try await self.api.node.openStream(to: peer, name: name, body: request.body)
            }
            return try .json(ControlAPI.Stream(stream))
        } catch {
            // The unread rest of the body may never end.
            var problem = APIProblem(error)
            problem.closesConnection = true
            throw problem
        }
    }

    /// Returns an answer whose body is the accepted stream. The answer begins when a stream is accepted. If the stream breaks off, so
    /// does the body.
    private func content(
        _ request: Request, _ context: APIContext, _ accept: @escaping @Sendable () async throws -> StreamContent
    ) async throws -> Response {
        if DescriptorConnection.isWanted(by: request.head) {
            let node = self.api.node
            try await DescriptorConnection.receive(context, subject: "the stream's output", for: .writing) { file, _ in
                let output = try await PassedDescriptor.forStream(file)
                let content = try await accept()
                do {
                    try await content.move(to: output)
                    try await content.finish()
                } catch {
                    content.abandon()
                    throw error
                }
                return ControlAPI.DescriptorLine(stream: ControlAPI.Stream(try await node.stream(content.stream.id)))
            }
        }
        let channel = context.channel
        let end = InputEndHandler { channel.close(promise: nil) }
        try await channel.pipeline.addHandler(end, position: .first)
        let content: StreamContent
        do {
            content = try await ClientPresence.required(on: channel, accept)
        } catch {
            // The connection can be used again, and a client that closes its sending half still gets its answers.
            try? await channel.pipeline.removeHandler(end)
            throw error
        }
        let taken: EventLoopFuture<Void>
        do {
            taken = try await ControlConnectionHandler.answerSent(on: channel)
        } catch {
            content.abandon()
            throw error
        }
        // The connection may end earlier, even before the body is asked for.
        taken.whenFailure { _ in content.abandon() }
        let body = ResponseBody { writer in
            do {
                if let outlet = try await StreamOutlet.of(channel) { content.use(outlet) }
                pieces: while true {
                    switch try await content.step() {
                    case .bytes(let piece): try await writer.write(piece)
                    case .connection(let connection):
                        try await OrderlyCloseHandler.flush(channel)
                        await content.move(connection)
                    case .end: break pieces
                    }
                }
                try await writer.finish(nil)
                try await taken.get()
                // The client may still refuse bytes that the kernel holds, and resets the connection then.
                try await end.clientEnds(channel, within: Self.endTime)
                try await content.finish()
                // The answer's head announced this close: a client that reads to the connection's end must not wait for the idle timeout.
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
