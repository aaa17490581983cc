import EarshotClient
import EarshotSafety
import Glibc

/// The settings file that `earshot config` works on, with the settings that are in effect.
struct SettingsPlace: Sendable {
    static let fileName = "earshotd.conf"

    /// The absolute path of the settings file.
    let path: String
    /// The settings: those of the running daemon, or those in the files.
    let settings: ControlReply<ControlAPI.SettingList>
    /// Whether a daemon runs with these settings.
    let isRunning: Bool

    /// The directory of the drop-ins.
    var directory: String { self.path + ".d" }

    /// Finds the place: the file that the user gave, else the running daemon's, else the one that a daemon of this user would read; root
    /// means the packaged service.
    static func find(_ given: String?, _ options: GlobalOptions) async throws -> SettingsPlace {
        let given = try given.map(Self.absolute)
        let running = try await Self.running(options, isNeeded: given == nil)
        if let running, let path = running.value.configuration, given == nil || Self.isSame(path, given ?? path) {
            return SettingsPlace(path: path, settings: running, isRunning: true)
        }
        guard given != nil || running == nil else {
            throw CommandFailure(.configuration, "the daemon has no settings file", hint: "start it with --config FILE")
        }
        let path = try given ?? Self.ownPath()
        return SettingsPlace(path: path, settings: try FileCheck.run(path), isRunning: false)
    }

    /// Returns the settings of the running daemon; `nil` without a daemon. If no file was given, a daemon that was named or that this user
    /// may not use is an error: the settings of another one are not meant.
    private static func running(
        _ options: GlobalOptions, isNeeded: Bool
    ) async throws -> ControlReply<ControlAPI.SettingList>? {
        do {
            return try await options.withClient { client in try await client.settings() }
        } catch let error as ControlError {
            let failure = CommandFailure(error)
            guard isNeeded else { return nil }
            if case .problem(let problem) = error, problem.code == .known(.notFound) {
                throw CommandFailure(
                    .failure, "the daemon is older than this command and does not tell its settings", hint: "restart the daemon")
            }
            guard failure.status == .noDaemon, options.socket == nil, getenv(ControlSocket.variable) == nil else { throw failure }
            return nil
        }
    }

    /// Returns the command that restarts the packaged daemon with these settings; `nil` if another program has started the daemon.
    static func restart(_ path: String) -> String? {
        if path.hasPrefix("\(DoctorFacts.Settings.systemDirectory)/") { return "sudo systemctl restart earshotd" }
        guard let own = DoctorFacts.Settings.userDirectory, path.hasPrefix("\(own)/"), DoctorFacts.Socket.hasOwnService() else {
            return nil
        }
        return "systemctl --user restart earshotd"
    }

    private static func ownPath() throws -> String {
        if geteuid() == 0 { return "\(DoctorFacts.Settings.systemDirectory)/\(Self.fileName)" }
        guard let base = DoctorFacts.Settings.userDirectory else {
            throw CommandFailure(.usage, "no place for settings: neither HOME nor XDG_CONFIG_HOME is set", hint: "give --config FILE")
        }
        return "\(base)/\(Self.fileName)"
    }

    private static func absolute(_ path: String) throws -> String {
        guard !path.isEmpty else { throw CommandFailure(.usage, "the path of the settings file is empty") }
        guard !path.hasPrefix("/") else { return path }
        guard let buffer = getcwd(nil, 0) else { throw FileError("find", "the working directory") }
        defer { free(buffer) }
        return String(cString: buffer) + "/" + path
    }

    private static func isSame(_ one: String, _ other: String) -> Bool {
        if one == other { return true }
        guard let one = FileStatus(path: one), let other = FileStatus(path: other) else { return false }
        return one.identity == other.identity
    }
}

extension ControlAPI.SettingList {
    /// Returns the setting of that name; the case of keys of discovery info does not matter.
    func setting(_ key: String) -> ControlAPI.Setting? {
        self.settings.first { $0.key == key }
            ?? self.settings.first {
                $0.key.hasPrefix("\(SettingsText.Name.infoSection).") && $0.key.lowercased() == key.lowercased()
            }
    }
}
