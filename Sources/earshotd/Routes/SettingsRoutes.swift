internal import Earshot
internal import EarshotClient
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/settings`: the values in effect, and their reload.
struct SettingsRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/settings") { _, _ in
                try .json(ControlAPI.SettingList(self.api.settings.current, started: self.api.settings.started, isRunning: true))
            },
            Route(.post, "/v1/settings/reload") { _, _ in
                let reload = try await self.api.settings.reload()
                return try .json(ControlAPI.SettingsReload(changed: reload.changed, needsRestart: reload.needsRestart))
            },
        ]
    }
}
