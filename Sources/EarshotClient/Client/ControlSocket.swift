import Glibc

/// Where the daemon's socket is.
public enum ControlSocket {
    /// The system's daemon.
    public static let systemPath = "/run/earshot/earshot.sock"
    /// What names another one.
    public static let variable = "EARSHOT_SOCKET"

    /// The path that was given, else the environment's, else the user's own daemon where there is one, else the system's.
    public static func path(given: String?, environment: (String) -> String?, exists: (String) -> Bool) -> String {
        if let given { return given }
        if let path = environment(Self.variable), !path.isEmpty { return path }
        if let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") {
            let path = "\(directory)/earshot/earshot.sock"
            if exists(path) { return path }
        }
        return Self.systemPath
    }

    /// The path by this process's environment and files.
    public static func path(given: String?) -> String {
        Self.path(
            given: given, environment: { name in getenv(name).map { String(cString: $0) } },
            exists: { path in
                var status = stat()
                return stat(path, &status) == 0
            })
    }
}
