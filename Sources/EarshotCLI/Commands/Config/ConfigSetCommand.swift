import ArgumentParser
import EarshotClient
import EarshotSafety

struct ConfigSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change settings, after a check of all settings, and reload them.",
        usage: "earshot config set KEY VALUE [KEY VALUE]... [--config FILE]",
        discussion: """
            The values are written to 50-cli.conf in the directory of drop-ins beside the settings file. Other files, and comments in \
            this one, stay as they are. An empty value restores the default, even if an earlier file sets the key.
            """)

    @Argument(help: ArgumentHelp("A key with its section, and its value; may be repeated.", valueName: "key value"), completion: .setting)
    var words: [String]
    @OptionGroup var place: ConfigOptions
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.words.count.isMultiple(of: 2) else { throw ValidationError("give a KEY and a VALUE; quote a value that has blanks") }
    }

    mutating func run() async throws {
        let words = self.words
        let changes = stride(from: 0, to: words.count - 1, by: 2).map { (key: words[$0], value: String?.some(words[$0 + 1])) }
        try await self.options.change(changes, verb: "set", config: self.place.config)
    }
}

struct ConfigUnsetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unset", abstract: "Remove settings that earshot config set has made, and reload the others.")

    @Argument(help: ArgumentHelp("A key with its section; may be repeated.", valueName: "key"), completion: .settingKey)
    var keys: [String]
    @OptionGroup var place: ConfigOptions
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.change(self.keys.map { ($0, nil) }, verb: "unset", config: self.place.config)
    }
}

extension GlobalOptions {
    /// Changes settings, has the daemon reload them, and reports which of them take effect, and when.
    fileprivate func change(_ changes: [(key: String, value: String?)], verb: String, config: String?) async throws {
        let place = try await SettingsPlace.find(config, self)
        let change = try SettingsChange(place, changes, verb: verb)
        let options = self
        let (report, json) = try await change.apply { outcome in
            guard place.isRunning else { return (SettingsReport(change, outcome, running: nil), place.settings.json) }
            return try await options.withClient { client in
                do throws(ControlError) {
                    try await client.reloadSettings()
                    let running = try await client.settings()
                    return (SettingsReport(change, outcome, running: running.value), running.json)
                } catch {
                    guard case .problem(let problem) = error, problem.code == .known(.conflict) else { throw error }
                    throw CommandFailure(
                        .configuration, "the daemon refused the settings, and nothing was changed: \(problem.detail ?? problem.title)")
                }
            }
        }
        for line in report.lines { Standard.note(line) }
        if options.json { try Standard.write(json: json) }
    }
}
