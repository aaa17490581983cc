import ArgumentParser
import EarshotClient
import EarshotSafety

struct ConfigGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "get", abstract: "Print the value of a setting that is in effect.")

    @Argument(help: ArgumentHelp("The key with its section, such as peer.name.", valueName: "key"), completion: .settingKey)
    var key: String
    @Flag(name: .shortAndLong, help: "Print the key and the place of the value too.")
    var verbose = false
    @OptionGroup var place: ConfigOptions
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let place = try await SettingsPlace.find(self.place.config, self.options)
        let list = place.settings.value
        guard let setting = list.setting(self.key) else { throw Self.unknown(self.key, in: list) }
        place.tellIfNotRunning()
        if self.options.json { return try Standard.write(json: try ControlJSON.encode(setting)) }
        guard self.verbose else { return try Standard.write("\(setting.value)\n") }
        let next = setting.next.map { "; \($0) after a restart" } ?? ""
        let line = "\(setting.key) = \(setting.value) (\(setting.place ?? setting.source.rawValue)\(next))"
        try Standard.write("\(line.escapedOnceMore)\n")
    }

    /// The failure for a key that is not in the list; it suggests the closest one.
    static func unknown(_ key: String, in list: ControlAPI.SettingList) -> CommandFailure {
        let shown = key.escapedForDisplay
        guard !key.hasPrefix("\(SettingsText.Name.infoSection).") else {
            return CommandFailure(.data, "\(shown) is not set", code: "not-found")
        }
        let meant = CommandNames.closest(to: key, list.settings.map(\.key)).map { "; did you mean \($0.escapedForDisplay)?" } ?? ""
        return CommandFailure(
            .usage, "unknown key '\(shown)'\(meant)", hint: "list the keys: earshot config list", code: "invalid-parameter")
    }
}
