import EarshotClient
import EarshotSafety
import Glibc

extension DoctorFacts.Socket {
    /// The socket that the other commands use, and its state.
    static func gather(given: String?) -> DoctorFacts.Socket {
        let path = ControlSocket.path(given: given)
        let choice: Choice =
            if given != nil {
                .option
            } else if Terminal.environment(ControlSocket.variable)?.isEmpty == false {
                .environment
            } else {
                path == ControlSocket.systemPath ? .system : .user
            }
        return DoctorFacts.Socket(path: path, choice: choice, state: Self.state(path), hasOwnService: Self.hasOwnService())
    }

    /// Whether this user's systemd has a unit for earshotd.
    static func hasOwnService() -> Bool {
        let own = Terminal.environment("XDG_CONFIG_HOME") ?? Terminal.environment("HOME").map { "\($0)/.config" }
        return own.map { access("\($0)/systemd/user/earshotd.service", F_OK) == 0 } ?? false
    }

    /// The state of the socket at a path.
    static func state(_ path: String) -> State {
        let (descriptor, code) = SocketProbe.connect(path: path)
        if descriptor >= 0 { close(descriptor) }
        switch code {
        case 0: return .answers
        case ENOENT, ENOTDIR: return .missing
        case ECONNREFUSED, ENOTSOCK: return FileStatus(path: path)?.kind == .socket ? .refused : .notASocket
        case EACCES, EPERM: return Self.denied(path)
        default: return .failed(FileError.reason(code))
        }
    }

    /// The owner and group of the socket, or of the directory that denies access to it.
    private static func denied(_ path: String) -> State {
        var status = stat()
        if stat(path, &status) == 0 {
            return .denied(
                owner: Account.user(status.st_uid), group: Account.group(status.st_gid), isForGroup: status.st_mode & 0o020 != 0)
        }
        var directory = Substring(path)
        while let slash = directory.lastIndex(of: "/"), slash > directory.startIndex {
            directory = directory[..<slash]
            guard stat(String(directory), &status) == 0 else { continue }
            return .denied(
                owner: Account.user(status.st_uid), group: Account.group(status.st_gid), isForGroup: status.st_mode & 0o010 != 0)
        }
        return .failed("permission denied")
    }
}
