internal import ArgumentParser
internal import Earshot
internal import EarshotSafety

/// `earshotd identity`: the key of this machine, for users who may read it. It works on the files, whether the daemon runs or not.
struct IdentityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identity", abstract: "Show, replace or export the key by which peers know this machine.",
        discussion: """
            For the system's daemon, whose settings in /etc/earshot are read with its state directory: sudo -u earshot earshotd identity show \
            --state-directory /var/lib/earshot
            """,
        subcommands: [IdentityShowCommand.self, IdentityNewCommand.self, IdentityExportCommand.self])

    mutating func run() throws {
        throw StartError(description: "a command is missing: show, new or export; see earshotd identity --help", exitCode: 64)
    }
}

/// Where the files are: the daemon's own options, which its commands share with it.
struct PlaceOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Read the settings from this file.", valueName: "file"), completion: .file())
    var config: String?
    @Option(
        name: .long, help: ArgumentHelp("Keep identity, messages and received files here.", valueName: "dir"), completion: .directory)
    var stateDirectory: String?

    /// The settings, and the person's own identity where they name one.
    func load() throws -> (loaded: SettingsLoader.Result, own: Identity?) {
        // No socket is touched, so that none need be known.
        let flags = SettingsLoader.Flags(config: self.config, stateDirectory: self.stateDirectory, socket: "/run/earshot/earshot.sock")
        let loaded = try SettingsLoader(flags: flags).load()
        return (loaded, try loaded.settings.checkIdentity())
    }

    /// An error of the library, with the exit code of the kind.
    static func failure(_ error: EarshotError) -> StartError { StartError(description: error.message, exitCode: 74) }

    /// No daemon has run there yet.
    static func missing(_ directory: String) -> StartError {
        StartError(
            description: "no identity has been made in \(directory.escapedForDisplay) yet; earshotd makes one when it first starts, "
                + "and --state-directory names another place", exitCode: 66)
    }
}
