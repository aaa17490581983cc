internal import Earshot
internal import EarshotControl
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization

/// `/v1/events`: everything that happens, a line each, as it happens.
struct EventsRoutes: Sendable {
    /// A reader that has not taken what was written for this long is dropped.
    static let stallTime: Duration = .seconds(60)

    /// How an event stands in the stream.
    enum Format: Sendable {
        /// One JSON object a line.
        case lines
        /// Server-sent events (WHATWG HTML section 9.2).
        case serverSent

        init(accept: String?) {
            self = accept?.lowercased().contains("text/event-stream") == true ? .serverSent : .lines
        }

        var contentType: String {
            switch self {
            case .lines: "application/x-ndjson"
            case .serverSent: "text/event-stream"
            }
        }

        func buffer(_ event: ControlAPI.Event) throws -> ByteBuffer {
            let json = try ControlJSON.encode(event)
            var buffer = ByteBuffer()
            switch self {
            case .lines:
                buffer.writeBytes(json)
                buffer.writeStaticString("\n")
            case .serverSent:
                buffer.writeString("id: \(event.seq)\nevent: \(event.type.rawValue)\ndata: ")
                buffer.writeBytes(json)
                buffer.writeStaticString("\n\n")
            }
            return buffer
        }
    }

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] { [Route(.get, "/v1/events", self.events)] }

    private func events(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try Query(request)
        let log = self.api.node.events
        // Now, not when the body is asked for: what happens after the head is out must be in the stream.
        let subscription = log.subscribe(since: try query.number("since", 0...UInt64.max), epoch: query.text("epoch"))
        let format = Format(accept: request.headers[.accept])
        let epoch = log.epoch
        let channel = context.channel
        let body = ResponseBody { writer in
            try await request.body.consumeWithCancellationOnInboundClose { _ in
                try await Self.copy(subscription, epoch, format, to: &writer, channel)
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: format.contentType, .cacheControl: "no-store", .connection: "close"], body: body)
    }

    private static func copy(
        _ subscription: EventLog.Subscription, _ epoch: String, _ format: Format, to writer: inout any ResponseBodyWriter,
        _ channel: any Channel
    ) async throws {
        let watch = StallWatch()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await watch.run(limit: Self.stallTime)
                try await channel.close()
            }
            for try await event in subscription.cancelOnGracefulShutdown() {
                let buffer = try format.buffer(ControlAPI.Event(event, epoch: epoch))
                watch.begin()
                try await writer.write(buffer)
                watch.end()
            }
            group.cancelAll()
        }
    }
}

/// Notices when one write takes too long: the reader has stalled.
private final class StallWatch: Sendable {
    private let started = Mutex<ContinuousClock.Instant?>(nil)

    func begin() { self.started.withLock { $0 = .now } }
    func end() { self.started.withLock { $0 = nil } }

    /// Returns once a write has been under way for `limit`; throws when cancelled.
    func run(limit: Duration) async throws {
        while true {
            try await Task.sleep(for: .seconds(5))
            if let started = self.started.withLock({ $0 }), started.duration(to: .now) > limit { return }
        }
    }
}
