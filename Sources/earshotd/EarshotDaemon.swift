internal import ArgumentParser
internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import Glibc

/// The daemon's command line: reads flags and settings, runs the daemon, and reports every error in one line.
@main
struct EarshotDaemon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshotd",
        abstract: "Discover machines on the local network, and exchange messages and files with them.",
        discussion: """
            Settings come from, in order of precedence: flags; the environment (EARSHOT_PEER_NAME for name in [peer]); the settings \
            files; the defaults of a packaged systemd unit (EARSHOT_UNIT_PEER_NAME); the built-in defaults.
            """,
        version: "earshotd \(EarshotVersion.described)", subcommands: [IdentityCommand.self])

    @OptionGroup var places: PlaceOptions
    @Option(of: \.socket, completion: .file()) var socket: String?
    @Option(of: \.name) var name: String?
    @Option(of: \.serviceType) var serviceType: String?
    @Option(of: \.port) var port: String?
    @Option(of: \.discovery) var discovery: String?
    @Option(of: \.logLevel) var logLevel: String?
    @Flag(name: .long, help: "Check the settings, print the values that are set and their sources, and exit.")
    var checkConfig = false
    @Flag(name: .long, help: "With --check-config: print all settings as JSON, as GET /v1/settings does.")
    var json = false
    // For `earshot config`, which checks its drop-in before the file gets its name.
    @Option(name: .long, help: .hidden) var candidate: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Copy the store and the identity into this directory, and exit; the daemon may be running.", valueName: "dir"),
        completion: .directory)
    var backup: String?

    private var flags: SettingsLoader.Flags {
        SettingsLoader.Flags(
            config: self.places.config, stateDirectory: self.places.stateDirectory, socket: self.socket, name: self.name,
            serviceType: self.serviceType,
            port: self.port, discovery: self.discovery, logLevel: self.logLevel)
    }

    static func main() async {
        StandardDescriptors.fill()
        ProcessLimits.ignoreFileSizeSignal()
        if let fault = ArgumentText.fault() { Self.end(fault, 64) }
        do {
            var command = try Self.parseAsRoot()
            guard let daemon = command as? EarshotDaemon else {
                // The parser's own command for --help.
                try command.run()
                return
            }
            try await daemon.start()
        } catch let error as SettingsError {
            Self.end("\(error)", error.exitCode)
        } catch let error as StartError {
            Self.end(error.description, error.exitCode)
        } catch  where Self.exitCode(for: error) == .success {
            // --help and --version.
            print(Self.fullMessage(for: error))
        } catch {
            let sentence = Self.message(for: error).split(separator: "\n").first.map(String.init) ?? "wrong usage"
            Self.end(Self.inOurVoice(sentence) + "; see earshotd --help", 64)
        }
    }

    private func start() async throws {
        var loader = SettingsLoader(flags: self.flags)
        guard self.checkConfig || (!self.json && self.candidate == nil) else {
            throw StartError(description: "--json and --candidate need --check-config", exitCode: 64)
        }
        loader.candidate = self.candidate
        if let place = self.backup { return try self.writeBackup(to: place, loader) }
        let loaded = try loader.load(placed: !self.checkConfig)
        guard !self.checkConfig else {
            try loaded.check()
            if let fault = loaded.unknownVariables.first { throw fault }
            guard !self.json else {
                let list = ControlAPI.SettingList(loaded, started: loaded, isRunning: false)
                return try Self.output(String(decoding: try ControlJSON.encode(list), as: UTF8.self) + "\n")
            }
            return try Self.output(loaded.report.map { $0 + "\n" }.joined())
        }
        try await Daemon(loaded, loader: loader).run()
    }

    /// Writes a backup, and prints the path of its directory when the backup is complete.
    private func writeBackup(to place: String, _ loader: SettingsLoader) throws {
        guard !place.isEmpty, !self.checkConfig else {
            throw StartError(description: "--backup needs a directory, and cannot be combined with --check-config", exitCode: 64)
        }
        let state = try loader.load(placed: false).stateDirectory
        guard !state.isEmpty else { throw StartError(description: "give the state directory: --state-directory", exitCode: 64) }
        do throws(EarshotError) {
            try StateBackup.write(of: state, to: place)
        } catch {
            throw StartError(description: error.message, exitCode: 1)
        }
        // Records the version, so that another release can say which one to install. Optional.
        if let version = StateVersion(directory: state).read() { try? StateVersion(directory: place).write(version) }
        try Self.output("\(place.escapedForDisplay)\n")
    }

    /// Returns a sentence of the argument parser in the style of our errors: lower case, no full stop, on one line.
    private static func inOurVoice(_ sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        return (text.prefix(1).lowercased() + text.dropFirst()).escapedForDisplay
    }

    private static func end(_ message: String, _ code: Int32) -> Never {
        Self.say(message)
        Glibc.exit(code)
    }

    /// Writes to standard output, without a buffer: success is never reported before the bytes are written.
    static func output(_ text: String, to descriptor: CInt = STDOUT_FILENO) throws(StartError) {
        let code = Array(text.utf8).withUnsafeBytes { BytePipe.write($0, to: descriptor) }
        guard code == 0 else { throw .cannotWrite("standard output", code, exitCode: 74) }
    }

    /// Prints a message on standard error.
    static func say(_ message: String) {
        let line = Array("earshotd: \(message.escapedOnceMore)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}

extension Option where Value == String? {
    /// Makes the option of a setting's flag, with the setting's help and choices.
    fileprivate init(of text: KeyPath<SettingsLoader.Flags, String?>, completion: CompletionKind? = nil) {
        let setting = Setting.all.first { $0.flag?.text == text }
        let choices = setting.flatMap { $0.choices.isEmpty ? nil : CompletionKind.list($0.choices) }
        self.init(
            name: .long, help: setting.map { ArgumentHelp("\($0.summary)", valueName: $0.flag?.value) }, completion: completion ?? choices)
    }
}
