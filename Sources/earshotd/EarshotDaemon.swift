internal import ArgumentParser
internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import Glibc

/// The daemon's command line: flags into settings, settings into a running daemon, and every error in one line.
@main
struct EarshotDaemon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshotd",
        abstract: "Finds the machines within earshot, and carries messages and files between those that agree to talk.",
        discussion: """
            Settings come from flags, then the environment (EARSHOT_PEER_NAME for name in [peer]), then the file, then what a unit gives \
            (EARSHOT_UNIT_PEER_NAME), then defaults.
            """,
        version: "earshotd \(EarshotVersion.described)", subcommands: [IdentityCommand.self])

    @OptionGroup var places: PlaceOptions
    @Option(name: .long, help: ArgumentHelp("Serve the control API on this Unix socket.", valueName: "path"), completion: .file())
    var socket: String?
    @Option(name: .long, help: ArgumentHelp("The name that others see (default: the host name).", valueName: "name"))
    var name: String?
    @Option(name: .long, help: ArgumentHelp("Only peers of the same type see each other (default: earshot).", valueName: "type"))
    var serviceType: String?
    @Option(name: .long, help: ArgumentHelp("The TCP port to listen on (default: 47110, or any when that is taken).", valueName: "n"))
    var port: String?
    @Option(
        name: .long, help: ArgumentHelp("How to find others: auto, avahi, embedded or none.", valueName: "backend"),
        completion: .list(["auto", "avahi", "embedded", "none"]))
    var discovery: String?
    @Option(
        name: .long, help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"),
        completion: .list(["trace", "debug", "info", "notice", "warning", "error", "critical"]))
    var logLevel: String?
    @Flag(name: .long, help: "Say whether the settings will do, what is set and where, and end.")
    var checkConfig = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Copy the store and the identity into this directory, also while the daemon runs, and end.", valueName: "dir"),
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
        let loader = SettingsLoader(flags: self.flags)
        if let place = self.backup { return try self.writeBackup(to: place, loader) }
        let loaded = try loader.load(placed: !self.checkConfig)
        guard !self.checkConfig else {
            try loaded.check()
            if let fault = loaded.unknownVariables.first { throw fault }
            return try Self.output(loaded.report.map { $0 + "\n" }.joined())
        }
        try await Daemon(loaded, loader: loader).run()
    }

    /// Names the directory on standard output once all of it is there.
    private func writeBackup(to place: String, _ loader: SettingsLoader) throws {
        guard !place.isEmpty, !self.checkConfig else {
            throw StartError(description: "--backup takes a directory, and goes without --check-config", exitCode: 64)
        }
        let state = try loader.load(placed: false).stateDirectory
        guard !state.isEmpty else { throw StartError(description: "give the state directory: --state-directory", exitCode: 64) }
        do throws(EarshotError) {
            try StateBackup.write(of: state, to: place)
        } catch {
            throw StartError(description: error.message, exitCode: 1)
        }
        // For a later version, which is to say by it what to install; it can do without.
        if let version = StateVersion(directory: state).read() { try? StateVersion(directory: place).write(version) }
        try Self.output("\(place.escapedForDisplay)\n")
    }

    /// The parser's sentences, as ours are: lower case, no full stop, on one line.
    private static func inOurVoice(_ sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        return (text.prefix(1).lowercased() + text.dropFirst()).escapedForDisplay
    }

    private static func end(_ message: String, _ code: Int32) -> Never {
        Self.say(message)
        Glibc.exit(code)
    }

    /// Writes to standard output. Nothing is buffered here: who asked for it is not told that it is there while it is not.
    static func output(_ text: String, to descriptor: CInt = STDOUT_FILENO) throws(StartError) {
        let code = Array(text.utf8).withUnsafeBytes { BytePipe.write($0, to: descriptor) }
        guard code == 0 else { throw .cannotWrite("standard output", code, exitCode: 74) }
    }

    /// Tells a person something, on standard error.
    static func say(_ message: String) {
        let line = Array("earshotd: \(message.escapedOnceMore)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
