internal import EarshotSafety

/// Where the daemon's files are: given by hand, by systemd, or the XDG base directories.
struct Places: Sendable {
    /// Where the system's service has its files: its unit says so by systemd's variables, which a person who looks after it by hand has not.
    struct Service: Sendable {
        var settings = "/etc/earshot"
        var state = "/var/lib/earshot"

        var configuration: String { "\(self.settings)/earshotd.conf" }
    }

    /// The environment, and who runs the daemon.
    let environment: [String: String]
    let isRoot: Bool
    var service = Service()

    /// The settings file to read: the one given (which must exist), else the first place's (which need not). `stateFlag` is the state
    /// directory that was given.
    func configuration(flag: String?, stateFlag: String? = nil) throws(SettingsError) -> (path: String, mustExist: Bool)? {
        if let flag { return (try self.given(flag, "config"), true) }
        if let directory = self.systemd("CONFIGURATION_DIRECTORY") { return ("\(directory)/earshotd.conf", false) }
        if let path = self.serviceConfiguration(stateFlag ?? self.systemd("STATE_DIRECTORY")) { return (path, false) }
        guard let base = self.xdg("XDG_CONFIG_HOME", ".config") else { return nil }
        return ("\(base)/earshot/earshotd.conf", false)
    }

    /// The directory of identity, store and spool.
    func stateDirectory(flag: String?) throws(SettingsError) -> String {
        if let flag { return try self.given(flag, "state-directory") }
        if let directory = self.systemd("STATE_DIRECTORY") { return directory }
        guard let base = self.xdg("XDG_STATE_HOME", ".local/state") else {
            throw SettingsError("no place for the state: neither HOME nor XDG_STATE_HOME is set; give --state-directory", isUsage: true)
        }
        return "\(base)/earshot"
    }

    /// The control socket; `setting` is the flag's or the setting's value.
    func socket(setting: String?) throws(SettingsError) -> String {
        let path = try self.unboundedSocket(setting: setting)
        // sockaddr_un.sun_path with its terminator (unix(7)).
        guard path.utf8.count < 108 else {
            throw SettingsError("the socket path \(path.escapedForDisplay) is longer than 107 bytes; give a shorter one with --socket")
        }
        return path
    }

    /// What systemd has made for the socket.
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

    /// The service's settings where there are any, and that is the service's state directory: an identity there is not the service's where its
    /// settings name another.
    private func serviceConfiguration(_ stateDirectory: String?) -> String? {
        let path = self.service.configuration
        guard let stateDirectory, self.isServiceState(stateDirectory), FileStatus(path: path) != nil || FileStatus(path: path + ".d") != nil
        else { return nil }
        return path
    }

    /// However it is written: with a slash behind it, or by a link.
    private func isServiceState(_ directory: String) -> Bool {
        if directory == self.service.state { return true }
        guard let given = FileStatus(path: directory), let own = FileStatus(path: self.service.state) else { return false }
        return given.identity == own.identity
    }

    /// A flag's path: absolute, or from the working directory, which the daemon never leaves.
    private func given(_ path: String, _ flag: String) throws(SettingsError) -> String {
        guard !path.isEmpty else { throw SettingsError(.flag(flag), "the path is empty") }
        return path
    }

    /// systemd's variables hold several directories, separated by colons, where a unit names several.
    private func systemd(_ name: String) -> String? {
        guard let value = self.environment[name], let first = value.split(separator: ":").first, first.hasPrefix("/") else { return nil }
        return String(first)
    }

    /// A relative path in an XDG variable is to be ignored (XDG Base Directory Specification).
    private func absolute(_ name: String) -> String? {
        guard let value = self.environment[name], value.hasPrefix("/") else { return nil }
        return value
    }

    private func xdg(_ name: String, _ fallback: String) -> String? {
        self.absolute(name) ?? self.absolute("HOME").map { "\($0)/\(fallback)" }
    }
}
