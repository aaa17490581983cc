import EarshotClient
import EarshotSafety
import FoundationEssentials

/// The facts that the checks use, gathered once. Strings are unescaped; the checks escape them.
struct DoctorFacts: Sendable {
    var caller: Caller
    var socket: Socket
    var daemon: Daemon
    /// The version of this command.
    var version: String
    var settings: Settings
    var avahi: Avahi
    var bus: Bus
    var interfaces: [Interface]
    /// The other program that listens on the wanted port.
    var portUser: PortUser
    /// The other program that listens on the wanted TCP port of LocalSend.
    var localSendPortUser = PortUser.free
    /// The results of connecting to this machine's own addresses.
    var attempts: [Attempt]
    var firewall: Firewall
    var clock: Clock
    var disk: Disk
    /// The result of reaching the named peer.
    var peer = Peer.notNamed

    /// The user who runs this command.
    struct Caller: Hashable, Sendable {
        var name: String
        var isRoot: Bool
        /// The groups of this process.
        var groups: [String]
        /// The user's groups in the system's database; a new login gets these groups.
        var registeredGroups: [String]
    }

    /// The control socket.
    struct Socket: Hashable, Sendable {
        /// The source of the socket's path.
        enum Choice: Hashable, Sendable {
            case option, environment, user, system
        }

        enum State: Hashable, Sendable {
            /// A process accepts connections.
            case answers
            case missing
            /// The socket exists, but no process serves it.
            case refused
            /// The permissions of the socket, or of a directory above it, deny access.
            case denied(owner: String, group: String, isForGroup: Bool)
            case notASocket
            /// Another error, as a sentence.
            case failed(String)
        }

        var path: String
        var choice: Choice
        var state: State
        /// Whether this user has a service of their own, made by `Config/install --user`. If no daemon runs, the advice refers to this
        /// service.
        var hasOwnService = false
    }

    /// The daemon's answers.
    enum Daemon: Sendable {
        /// No process answers at the socket.
        case notAsked
        /// The daemon does not answer correctly; the reason, as a sentence.
        case failed(String)
        /// The status, the peers, the groups, and the bytes of received files.
        case answers(ControlAPI.Status, peers: [ControlAPI.Peer], groups: [ControlAPI.Group], received: UInt64)

        /// The status, if the daemon answered.
        var status: ControlAPI.Status? {
            guard case .answers(let status, _, _, _) = self else { return nil }
            return status
        }
    }

    /// The result of `earshotd --check-config`.
    struct Settings: Hashable, Sendable {
        /// Whether `earshotd` was found.
        var isChecked: Bool
        /// The existing files, each with its first problem.
        var files: [File]

        struct File: Hashable, Sendable {
            var path: String
            var problem: String?
            /// Whether the problem may concern only this user: the system's daemon runs as another user, with other permissions.
            var isOfThisUser = false
        }
    }

    struct Avahi: Hashable, Sendable {
        enum State: Hashable, Sendable {
            case answers, stopped, silent
        }

        var isInstalled: Bool
        var state: State
    }

    /// The system bus.
    struct Bus: Hashable, Sendable {
        var path: String
        var isRunning: Bool
    }

    struct Interface: Hashable, Sendable {
        var name: String
        var isUp: Bool
        var isLoopback: Bool
        var hasMulticast: Bool
        /// Whether it is a tunnel to a single machine; most tunnels have no multicast by design.
        var isPointToPoint: Bool
        var addresses: [String]
    }

    enum PortUser: Hashable, Sendable {
        /// No process listens on it.
        case free
        /// A process that only root can see.
        case unknown
        case process(Int32, name: String)

        /// The program's name for a sentence; `nil` without one.
        var words: String? {
            switch self {
            case .free: nil
            case .unknown: "another program (run as root to see which)"
            case .process(let id, let name): "\(name.escapedForDisplay) (process \(id))"
            }
        }
    }

    /// A connection attempt to an address of this machine.
    struct Attempt: Hashable, Sendable {
        enum Result: Hashable, Sendable {
            case connected
            /// No answer in time.
            case silence
            /// The kernel's error, as a sentence.
            case error(String)
        }

        var address: String
        var result: Result
    }

    enum Firewall: Sendable {
        case notPermitted
        /// There is no program to read the rules.
        case noTool
        /// The rules could not be read; the reason, as a sentence.
        case unreadable(String)
        case rules(NftRuleset)
    }

    struct Clock: Hashable, Sendable {
        var now: Date
        /// `nil` if the kernel does not report it.
        var isSynchronised: Bool?
        /// Whether a program for time synchronisation is installed.
        var hasKeeper = true
    }

    enum Disk: Hashable, Sendable {
        /// The state directory is unknown.
        case unknown
        /// The directory could not be examined; the reason, as a sentence.
        case failed(path: String, String)
        /// A file could be created there but not written; the reason, as a sentence.
        case unwritable(path: String, String)
        case space(path: String, Space)

        struct Space: Hashable, Sendable {
            /// The size in bytes.
            var total: UInt64
            /// The bytes that the daemon can still use.
            var free: UInt64
            var isReadOnly: Bool
            /// The number of inodes; 0 if the file system has no such limit.
            var inodes: UInt64
            var freeInodes: UInt64
        }
    }
}
