import EarshotSafety

extension Check {
    /// The socket, the source of its path, and whether this user may use it.
    static let socket = Check("socket") { facts in
        let socket = facts.socket
        let path = socket.path.escapedForDisplay
        let why =
            switch socket.choice {
            case .option: "given by --socket"
            case .environment: "named by EARSHOT_SOCKET"
            case .user: "of the user's own daemon"
            case .system: "of the system's daemon"
            }
        switch socket.state {
        case .answers: return [.ok("\(path), \(why)")]
        case .missing:
            return [.fail("no daemon is running: there is no socket at \(path), \(why)", next: Self.start(socket))]
        case .refused:
            return [
                .fail(
                    "a stale socket: \(path), \(why), exists, but its daemon has ended",
                    next: "start the daemon, which replaces the socket: \(Self.start(socket))")
            ]
        case .denied(let owner, let group, let isForGroup):
            var remark = Self.denied(facts.caller, path, owner, group, isForGroup)
            if socket.choice == .system, socket.hasOwnService { remark.next = "start your own daemon: \(Self.startOwn)" }
            return [remark]
        case .notASocket: return [.fail("\(path), \(why), is not a socket", next: "give the daemon's socket: --socket PATH")]
        case .failed(let reason):
            return [.fail("cannot use \(path), \(why): \(reason.escapedForDisplay)", next: "give another socket: --socket PATH")]
        }
    }

    /// The command that starts a daemon for this socket.
    private static func start(_ socket: DoctorFacts.Socket) -> String {
        socket.choice == .user || socket.choice == .system && socket.hasOwnService
            ? "\(Self.startOwn), or run earshotd; if that fails: journalctl --user -u earshotd -n 20"
            : "sudo systemctl start earshotd, or run earshotd; if that fails: journalctl -u earshotd -n 20"
    }

    /// The command that starts a user's own daemon.
    static let startOwn = "systemctl --user start earshotd"

    /// Returns the failure for a user without permission for a socket, with the next step.
    static func denied(_ caller: DoctorFacts.Caller, _ path: String, _ owner: String, _ group: String, _ isForGroup: Bool) -> Remark {
        let (name, owner, group) = (caller.name.escapedForDisplay, owner.escapedForDisplay, group.escapedForDisplay)
        guard isForGroup else {
            return .fail(
                "\(name) is not permitted to use \(path): only the user \(owner) is",
                next: "set group in [control] of earshotd.conf, or: sudo -u \(owner) earshot")
        }
        guard caller.registeredGroups.contains(group), !caller.groups.contains(group) else {
            return .fail(
                "\(name) is not permitted to use \(path): only the user \(owner) and the group \(group) are",
                next: "sudo adduser \(name) \(group), and log in again")
        }
        return .fail("\(name) joined the group \(group) after this login, and is not permitted to use \(path) yet", next: "log in again")
    }
}
