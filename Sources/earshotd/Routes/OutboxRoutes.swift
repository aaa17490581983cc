internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/outbox`: the queued messages.
struct OutboxRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/outbox") { _, _ in
                try .json(ControlAPI.Outbox(messages: await self.api.node.outbox().map(ControlAPI.OutboxMessage.init)))
            },
            Route(.delete, "/v1/outbox/:id") { _, context in
                let id: MessageID = try context.identifier("a message")
                let sent = try await self.api.node.cancelQueued(id)
                return try .json(
                    ControlAPI.MessageReceipt(
                        messageID: sent.id, recipients: sent.recipients.map(ControlAPI.Recipient.init)))
            },
        ]
    }
}
