internal import Earshot
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/events`: the events, one per line, as they happen.
struct EventsRoutes: Sendable {
    private static let lastEventID: HTTPField.Name = {
        guard let name = HTTPField.Name("Last-Event-ID") else { preconditionFailure("Last-Event-ID is a token") }
        return name
    }()

    private static let eventPosition: HTTPField.Name = {
        guard let name = HTTPField.Name(ControlAPI.eventPositionHeader) else {
            preconditionFailure("\(ControlAPI.eventPositionHeader) is a token")
        }
        return name
    }()

    let api: ControlAPIServices
    private let buffers: EventBuffers

    init(_ api: ControlAPIServices) {
        self.api = api
        self.buffers = EventBuffers(epoch: api.node.events.epoch)
    }

    var routes: [Route] { [Route(.get, "/v1/events", self.events)] }

    private func events(_ request: Request, _ context: APIContext) async throws -> Response {
        let position = try Self.position(request)
        let format = EventFormat(accept: request.headers[.accept])
        var headers: HTTPFields = [.contentType: format.contentType, .cacheControl: "no-store"]
        // A HEAD reads no events: it does not count as a reader, and its connection stays in use.
        guard !context.isHead else {
            return Response(status: .ok, headers: headers, body: ResponseBody { writer in try await writer.finish(nil) })
        }
        headers[.connection] = "close"
        let channel = context.channel
        let readers = self.api.readers
        let reader = try readers.enter { channel.close(promise: nil) }
        // Subscribes now, not when the body is requested: events after the head must be in the stream.
        let subscription = self.api.node.events.subscribe(since: position.since, epoch: position.epoch)
        headers[Self.eventPosition] = "\(self.api.node.events.epoch):\(subscription.beginning)"
        // Covers every end of the connection, even if the body is never requested. Without the second call, the request of a reader that
        // has hung up would wait for the next event, and keep its connection's memory until then.
        channel.closeFuture.whenComplete { _ in
            readers.leave(reader)
            subscription.end()
        }
        try await channel.pipeline.addHandler(InputEndHandler { channel.close(promise: nil) }, position: .first)
        let body = ResponseBody { writer in
            try await self.copy(subscription, format, reader, to: &writer)
            readers.leave(reader)
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: headers, body: body)
    }

    /// Returns the query's position, otherwise the position that an `EventSource` sends when it reconnects.
    private static func position(_ request: Request) throws(APIProblem) -> EventPosition {
        let query = try Query(request)
        let asked = EventPosition(since: try query.number("since", 0...UInt64.max), epoch: try query.text("epoch"))
        guard asked.since == nil, let text = request.headers[Self.lastEventID], !text.isEmpty else { return asked }
        guard let last = EventPosition(lastEventID: text) else {
            throw APIProblem(.invalidParameter, "a Last-Event-ID is EPOCH:SEQ or SEQ, as in the stream's ids")
        }
        return last
    }

    @concurrent private func copy(
        _ subscription: EventLog.Subscription, _ format: EventFormat, _ reader: UInt64, to writer: inout any ResponseBodyWriter
    ) async throws {
        var subscription = subscription
        while true {
            let buffer: ByteBuffer
            switch await subscription.step() {
            case .event(let event): buffer = try self.buffers.buffer(event, format)
            case .program(let event):
                guard let event = ControlAPI.Event(event, epoch: self.api.node.events.epoch) else { continue }
                buffer = try format.buffer(event)
            // The reader has gone, or the daemon stops.
            case .idle where !self.api.readers.contains(reader): return
            case .idle:
                guard let heartbeat = format.heartbeat else { continue }
                buffer = heartbeat
            case .ended: return
            }
            self.api.readers.writing(reader)
            try await writer.write(buffer)
            self.api.readers.written(reader)
        }
    }
}
