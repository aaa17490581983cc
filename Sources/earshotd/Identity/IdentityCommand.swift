internal import ArgumentParser
internal import Earshot
internal import EarshotSafety
internal import Glibc

/// `earshotd identity`: the key of this machine, for users who may read it. It works on the files, whether the daemon runs or not.
struct IdentityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identity", abstract: "Show, replace or export this machine's key.",
        discussion: """
            If the user has no identity, show and export use the identity of the system's daemon. For new, name the state directory of the \
            system's daemon: --state-directory /var/lib/earshot. Only root and the user earshot can read the key there: sudo -u earshot \
            earshotd identity show --state-directory /var/lib/earshot
            """,
        subcommands: [IdentityShowCommand.self, IdentityNewCommand.self, IdentityExportCommand.self])

    mutating func run() throws {
        throw StartError(description: "a command is missing: show, new or export; see earshotd identity --help", exitCode: 64)
    }
}

/// The options for the places of the files. The daemon and its commands share them.
struct PlaceOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Read the settings from this file.", valueName: "file"), completion: .file())
    var config: String?
    @Option(
        name: .long, help: ArgumentHelp("Directory for the identity, messages and received files.", valueName: "dir"),
        completion: .directory)
    var stateDirectory: String?

    /// Loads the settings, and the user's own identity if the settings name one.
    func load() throws -> (loaded: SettingsLoader.Result, own: Identity?) {
        // The command does not use the socket, so the path may be any.
        let flags = SettingsLoader.Flags(config: self.config, stateDirectory: self.stateDirectory, socket: "/run/earshot/earshot.sock")
        let loaded = try SettingsLoader(flags: flags).load()
        return (loaded, try loaded.settings.checkIdentity())
    }

    /// Loads the settings for a command that only reads the identity: the settings of the system's daemon if the user named no place
    /// and has no identity.
    func loadForReading() throws -> (loaded: SettingsLoader.Result, own: Identity?) {
        let (loaded, own) = try self.load()
        guard self.config == nil, self.stateDirectory == nil, own == nil,
            let directory = Self.systemState(besides: loaded.stateDirectory, service: Places.Service())
        else { return (loaded, own) }
        guard access(directory, R_OK | X_OK) == 0 else {
            throw StartError(
                description: "no identity in \(loaded.stateDirectory.escapedForDisplay), and that of the system's daemon in "
                    + "\(directory) is not readable by this user; see it with: sudo -u earshot earshotd identity show "
                    + "--state-directory \(directory)", exitCode: 77)
        }
        var options = PlaceOptions()
        options.stateDirectory = directory
        return try options.load()
    }

    /// Returns the state directory of the system's daemon, if there is one and `own` has no identity.
    static func systemState(besides own: String, service: Places.Service) -> String? {
        guard FileStatus(path: "\(own)/\(Identity.fileName)") == nil, FileStatus(path: service.state) != nil else { return nil }
        return service.state
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
