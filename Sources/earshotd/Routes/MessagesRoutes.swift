internal import Earshot
internal import EarshotControl
internal import EarshotWire
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/messages`: sending, and the inbox.
struct MessagesRoutes: Sendable {
    /// Messages in one answer, at most.
    static let listLimit: UInt64 = 1000

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/messages", self.send),
            Route(.get, "/v1/messages") { request, _ in
                let query = try Query(request)
                let all = try query.choice("state", ["unread", "all"]) == "all"
                let limit = Int(try query.number("limit", 1...Self.listLimit) ?? 100)
                let messages = try await self.api.node.messages(state: all ? nil : .unread, from: query.text("from"), limit: limit)
                return try .json(ControlAPI.MessageList(messages: messages.map(ControlAPI.Message.init)))
            },
            Route(.get, "/v1/messages/:id") { request, context in
                let id: MessageID = try context.identifier("a message")
                return try .json(ControlAPI.Message(try await self.api.node.message(id, from: try Query(request).text("from"))))
            },
            Route(.post, "/v1/messages/:id/read") { request, context in
                let id: MessageID = try context.identifier("a message")
                return try .json(ControlAPI.Message(try await self.api.node.markRead(id, from: try Query(request).text("from"))))
            },
        ]
    }

    private func send(_ request: Request, _ context: APIContext) async throws -> Response {
        let body = try await request.json(ControlAPI.MessageRequest.self)
        let recipients: Message.Recipients
        switch body.to {
        case .all: recipients = .all
        case .peers(let peers):
            guard !peers.isEmpty, !peers.contains("") else {
                throw APIProblem(.invalidParameter, "`to` names no peer; give names, ids or their first 8 characters")
            }
            recipients = .peers(peers)
        }
        let mode: Message.Mode
        switch body.mode.known {
        case .reliable: mode = .reliable
        case .unreliable: mode = .unreliable
        case nil: throw APIProblem(.invalidParameter, "`mode` is reliable or unreliable")
        }
        let id = try body.messageID.map { text throws(APIProblem) in
            guard let id = MessageID(text) else {
                throw APIProblem(.invalidParameter, "`message_id` is a UUID such as \(APIContext.exampleID)")
            }
            return id
        }
        let timeout = try body.timeoutSeconds.map { seconds throws(APIProblem) in
            guard seconds > 0 else { throw APIProblem(.invalidParameter, "`timeout_seconds` is more than 0") }
            return try Duration.request(seconds, field: "timeout_seconds", atMost: EarshotLimits.messageTimeoutLimit)
        }
        let queue = body.queue ?? false
        let sent = try await self.api.node.send(
            to: recipients, contentType: body.contentType, body: ByteBuffer(bytes: body.body), mode: mode, id: id, queue: queue,
            timeout: timeout)
        // What waits in the outbox is accepted, and no more is known yet (RFC 9110 section 15.3.3).
        return try .json(
            ControlAPI.MessageReceipt(messageID: sent.id.description, recipients: sent.recipients.map(ControlAPI.Recipient.init)),
            status: queue ? .accepted : .ok)
    }
}
