import ArgumentParser
import EarshotClient
import EarshotSafety

struct ConfigListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List all settings with their values in effect and the places of the values.")

    @OptionGroup var place: ConfigOptions
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let place = try await SettingsPlace.find(self.place.config, self.options)
        place.tellIfNotRunning()
        if self.options.json { return try Standard.write(json: place.settings.json) }
        try Render.settings(place.settings.value.settings).show(empty: "no settings")
    }
}

extension Render {
    static func settings(_ settings: [ControlAPI.Setting]) -> Table {
        Table(
            [.init(title: "KEY"), .init(title: "VALUE", isFlexible: true), .init(title: "SOURCE", isFlexible: true)],
            rows: settings.map { setting in
                let next = setting.next.map { "; after a restart: \($0)" } ?? ""
                return [setting.key, setting.value + next, setting.place ?? setting.source.rawValue]
            })
    }
}

extension SettingsPlace {
    /// Reports that the values are those of the files, if no daemon runs with them.
    func tellIfNotRunning() {
        guard !self.isRunning else { return }
        Standard.note("no daemon runs with \(self.path.escapedForDisplay): these are the values for its next start")
    }
}
