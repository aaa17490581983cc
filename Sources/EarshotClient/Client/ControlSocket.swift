import Glibc

/// The path of the daemon's socket.
public enum ControlSocket {
    /// The socket of the system's daemon.
    public static let systemPath = "/run/earshot/earshot.sock"
    /// The environment variable for another path.
    public static let variable = "EARSHOT_SOCKET"

    /// Returns the given path, otherwise the environment's, otherwise the user's own daemon's if it exists, otherwise the system's.
    public static func path(given: String?, environment: (String) -> String?, exists: (String) -> Bool) -> String {
        if let given { return given }
        if let path = environment(Self.variable), !path.isEmpty { return path }
        if let directory = environment("XDG_RUNTIME_DIR"), directory.hasPrefix("/") {
            let path = "\(directory)/earshot/earshot.sock"
            if exists(path) { return path }
        }
        return Self.systemPath
    }

    /// Returns the path, from this process's environment and files.
    public static func path(given: String?) -> String {
        Self.path(
            given: given, environment: { name in getenv(name).map { String(cString: $0) } },
            exists: { path in
                var status = stat()
                return stat(path, &status) == 0
            })
    }
}
