internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/sessions`: the sessions with peers.
struct SessionsRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/sessions") { _, _ in
                try .json(ControlAPI.SessionList(sessions: await self.api.node.sessions().map(ControlAPI.Session.init)))
            },
            Route(.delete, "/v1/sessions/:id") { _, context in
                let id: SessionID = try context.identifier("a session")
                try await self.api.node.leave(id)
                return .noContent
            },
        ]
    }
}
