import ArgumentParser

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Show or change the daemon's settings; see earshotd.conf(5).",
        subcommands: [ConfigListCommand.self, ConfigGetCommand.self, ConfigSetCommand.self, ConfigUnsetCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}

/// The option that names another settings file.
struct ConfigOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's settings file. Default: that of the running daemon, else that of this user's daemon, or for root that of the "
                + "system's daemon.", valueName: "file"), completion: .file())
    var config: String?
}
