internal import Earshot
internal import EarshotClient
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/status`.
struct StatusRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/status") { _, _ in
                try .json(ControlAPI.Status(await self.api.node.status(), version: EarshotVersion.current))
            }
        ]
    }
}
