internal import EarshotSafety

/// The places of the daemon's files: set by flags, by systemd, or by the XDG base directories.
struct Places: Sendable {
    /// The places of the packaged service's files. The service itself learns them from systemd's variables. An administrator who runs the
    /// daemon by hand does not have these variables.
    struct Service: Sendable {
        var settings = "/etc/earshot"
        var state = "/var/lib/earshot"

        var configuration: String { "\(self.settings)/earshotd.conf" }
    }

    /// The environment of the process, by variable.
    let environment: [String: String]
    let isRoot: Bool
    var service = Service()

    /// Returns the settings file to read: the given file, which must exist, or else the file in the first known place, which need not
    /// exist. `stateFlag` is the given state directory.
    func configuration(flag: String?, stateFlag: String? = nil) throws(SettingsError) -> (path: String, mustExist: Bool)? {
        if let flag { return (try self.given(flag, "config"), true) }
        if let directory = self.systemd("CONFIGURATION_DIRECTORY") { return ("\(directory)/earshotd.conf", false) }
        if let path = self.serviceConfiguration(stateFlag ?? self.systemd("STATE_DIRECTORY")) { return (path, false) }
        guard let base = self.xdg("XDG_CONFIG_HOME", ".config") else { return nil }
        return ("\(base)/earshot/earshotd.conf", false)
    }

    /// Returns the directory of the identity, the store and the spool.
    func stateDirectory(flag: String?) throws(SettingsError) -> String {
        if let flag { return try self.given(flag, "state-directory") }
        if let directory = self.systemd("STATE_DIRECTORY") { return directory }
        guard let base = self.xdg("XDG_STATE_HOME", ".local/state") else {
            throw SettingsError("no place for the state: neither HOME nor XDG_STATE_HOME is set; give --state-directory", isUsage: true)
        }
        return "\(base)/earshot"
    }

    /// Returns the path of the control socket; `setting` is the value of the flag or of the setting.
    func socket(setting: String?) throws(SettingsError) -> String {
        let path = try self.unboundedSocket(setting: setting)
        // sockaddr_un.sun_path with its terminator (unix(7)).
        guard path.utf8.count < 108 else {
            throw SettingsError("the socket path \(path.escapedForDisplay) is longer than 107 bytes; give a shorter one with --socket")
        }
        return path
    }

    /// The directory that systemd has made for the socket.
    var runtimeDirectory: String? { self.systemd("RUNTIME_DIRECTORY") }

    private func unboundedSocket(setting: String?) throws(SettingsError) -> String {
        if let setting { return setting }
        if let directory = self.runtimeDirectory { return "\(directory)/earshot.sock" }
        if let directory = self.absolute("XDG_RUNTIME_DIR") { return "\(directory)/earshot/earshot.sock" }
        guard self.isRoot else {
            throw SettingsError("no place for the control socket: XDG_RUNTIME_DIR is not set; give --socket PATH", isUsage: true)
        }
        return "/run/earshot/earshot.sock"
    }

    /// Returns the service's settings file if it exists and the given state directory is the service's. The settings are needed because
    /// they may name another identity than the one in that directory.
    private func serviceConfiguration(_ stateDirectory: String?) -> String? {
        let path = self.service.configuration
        guard let stateDirectory, self.isServiceState(stateDirectory), FileStatus(path: path) != nil || FileStatus(path: path + ".d") != nil
        else { return nil }
        return path
    }

    /// Whether the path names the service's state directory, also with a trailing slash or through a link.
    private func isServiceState(_ directory: String) -> Bool {
        if directory == self.service.state { return true }
        guard let given = FileStatus(path: directory), let own = FileStatus(path: self.service.state) else { return false }
        return given.identity == own.identity
    }

    /// Checks a flag's path. It may be relative to the working directory, which the daemon never changes.
    private func given(_ path: String, _ flag: String) throws(SettingsError) -> String {
        guard !path.isEmpty else { throw SettingsError(.flag(flag), "the path is empty") }
        return path
    }

    /// Returns the first directory of a systemd variable. If a unit names several directories, colons separate them.
    private func systemd(_ name: String) -> String? {
        guard let value = self.environment[name], let first = value.split(separator: ":").first, first.hasPrefix("/") else { return nil }
        return String(first)
    }

    /// Returns the absolute path in a variable. A relative path must be ignored (XDG Base Directory Specification).
    private func absolute(_ name: String) -> String? {
        guard let value = self.environment[name], value.hasPrefix("/") else { return nil }
        return value
    }

    private func xdg(_ name: String, _ fallback: String) -> String? {
        self.absolute(name) ?? self.absolute("HOME").map { "\($0)/\(fallback)" }
    }
}
