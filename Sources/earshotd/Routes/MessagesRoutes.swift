internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/messages`: sending, and the inbox.
struct MessagesRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/messages", self.send),
            Route(.get, "/v1/messages") { request, _ in
                let query = try Query(request)
                let all = try query.choice("state", ["unread", "all"]) == "all"
                let limit = Int(try query.number("limit", 1...UInt64(EarshotLimits.messagesListed)) ?? 100)
                let place = Int64(try query.number("after", 0...UInt64(Int64.max)) ?? 0)
                let page = try await self.api.node.messagePage(
                    state: all ? nil : .unread, from: try query.text("from"), in: try query.text("group"), after: place, limit: limit)
                return try .json(
                    ControlAPI.MessageList(messages: page.messages.map(ControlAPI.Message.init), next: page.next.map(String.init)))
            },
            Route(.get, "/v1/messages/:id") { request, context in
                let id: MessageID = try context.identifier("a message")
                return try .json(ControlAPI.Message(try await self.api.node.message(id, from: try Query(request).text("from"))))
            },
            Route(.post, "/v1/messages/:id/read") { request, context in
                let id: MessageID = try context.identifier("a message")
                return try .json(ControlAPI.Message(try await self.api.node.markRead(id, from: try Query(request).text("from"))))
            },
            Route(.post, "/v1/messages/read") { request, _ in
                let entries = try await request.json(ControlAPI.ReadRequest.self).messages
                let messages = entries.map { (id: $0.id, from: $0.from as (any PeerReference)?) }
                return try .json(ControlAPI.ReadResult(marked: try await self.api.node.markRead(messages)))
            },
        ]
    }

    private func send(_ request: Request, _ context: APIContext) async throws -> Response {
        if RequestRules.mediaType(request.headers[.contentType]) == MessageLines.mediaType { return Self.sendLines(request, self.api.node) }
        var reader = MessageRequestReader()
        let draft = try reader.draft(try await request.jsonBody())
        guard let outcome = await self.api.node.submit([draft]).outcomes().first else {
            throw APIProblem(.unavailable, "the daemon is stopping; try again once it runs")
        }
        var receipts = MessageReceiptWriter()
        let receipt = try receipts.write(try outcome.get())
        return Response(
            status: draft.successStatus, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: receipt))
    }

    /// The caller's preferences (RFC 7240).
    private static let prefer: HTTPField.Name = {
        guard let name = HTTPField.Name("Prefer") else { preconditionFailure("Prefer is a token") }
        return name
    }()

    private static func sendLines(_ request: Request, _ node: Node) -> Response {
        let wish = request.headers[Self.prefer]?.lowercased().filter { $0 != " " && $0 != "\t" } ?? ""
        let lines = MessageLines(node: node, isMinimal: wish.split(separator: ",").contains { $0 == "return=minimal" })
        return Response(
            status: .ok, headers: [.contentType: MessageLines.mediaType, .cacheControl: "no-store"],
            body: ResponseBody { writer in try await lines.copy(from: request.body, to: &writer) })
    }
}
