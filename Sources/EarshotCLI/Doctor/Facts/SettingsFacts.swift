import EarshotSafety
import Glibc

extension DoctorFacts.Settings {
    /// The system's settings directory.
    static let systemDirectory = "/etc/earshot"

    /// Has `earshotd` check the settings files that exist and are readable.
    static func gather() -> DoctorFacts.Settings {
        guard let daemon = Self.program() else { return DoctorFacts.Settings(isChecked: false, files: []) }
        let files = ([Self.userDirectory].compactMap { $0 } + [Self.systemDirectory]).flatMap { directory -> [File] in
            let main = "\(directory)/earshotd.conf"
            let hasSettings = access(main, R_OK) == 0 || access("\(main).d", R_OK) == 0
            guard hasSettings else { return [] }
            let problem = Self.problem(of: directory, daemon)
            return [File(path: main, problem: problem, isOfThisUser: problem.map { Self.isOfThisUser($0, directory) } ?? false)]
        }
        return DoctorFacts.Settings(isChecked: true, files: files)
    }

    /// Whether the problem may not exist for root or for the user of the system's daemon, who can read other keys and directories.
    private static func isOfThisUser(_ problem: String, _ directory: String) -> Bool {
        directory == Self.systemDirectory && geteuid() != 0 && problem.lowercased().contains(FileError.reason(EACCES))
    }

    private static func problem(of directory: String, _ daemon: String) -> String? {
        // Only the settings matter here: no directory of this user may cause an error.
        let environment = [
            "CONFIGURATION_DIRECTORY=\(directory)", "STATE_DIRECTORY=/nonexistent", "RUNTIME_DIRECTORY=/nonexistent", "LC_ALL=C",
        ]
        guard let run = ToolRun.run(daemon, ["--check-config"], environment: environment) else { return nil }
        guard run.status != 0 else { return nil }
        let line = run.errors.split(separator: "\n").first.map(String.init) ?? "earshotd --check-config fails"
        // earshotd has already escaped foreign text.
        return line.hasPrefix("earshotd: ") ? String(line.dropFirst("earshotd: ".count)) : line
    }

    /// The settings directory of this user's own daemon.
    static var userDirectory: String? {
        (Self.absolute("XDG_CONFIG_HOME") ?? Self.absolute("HOME").map { "\($0)/.config" }).map { "\($0)/earshot" }
    }

    /// The daemon that was installed with this command, otherwise the daemon on the PATH.
    static func program() -> String? {
        if let own = SmallFile.link("/proc/self/exe"), let slash = own.lastIndex(of: "/") {
            let beside = "\(own[..<slash])/earshotd"
            if access(beside, X_OK) == 0 { return beside }
        }
        return ToolRun.find("earshotd")
    }

    private static func absolute(_ name: String) -> String? { Terminal.environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
}
