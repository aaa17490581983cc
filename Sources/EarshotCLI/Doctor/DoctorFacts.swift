import EarshotClient
import FoundationEssentials

/// Everything that the checks judge by, gathered once. Strings are as they were found: they are escaped where they are shown.
struct DoctorFacts: Sendable {
    var caller: Caller
    var socket: Socket
    var daemon: Daemon
    /// This command's own version.
    var version: String
    var settings: Settings
    var avahi: Avahi
    var bus: Bus
    var interfaces: [Interface]
    /// Who listens on the port that was wanted, beside our daemon.
    var portUser: PortUser
    /// What became of connecting to our own addresses.
    var attempts: [Attempt]
    var firewall: Firewall
    var clock: Clock
    var disk: Disk
    /// The result of reaching the named peer.
    var peer = Peer.notNamed

    /// Who runs this command.
    struct Caller: Hashable, Sendable {
        var name: String
        var isRoot: Bool
        /// The groups of this process.
        var groups: [String]
        /// The groups that the system's database has this user in: a login takes them from there.
        var registeredGroups: [String]
    }

    /// The control socket.
    struct Socket: Hashable, Sendable {
        /// Why it is this one.
        enum Choice: Hashable, Sendable {
            case option, environment, user, system
        }

        enum State: Hashable, Sendable {
            /// A process takes connections.
            case answers
            case missing
            /// It is there and no process serves it.
            case refused
            /// The permissions stand in the way: of the socket or of a directory above it.
            case denied(owner: String, group: String, isForGroup: Bool)
            case notASocket
            /// Another error, in words.
            case failed(String)
        }

        var path: String
        var choice: Choice
        var state: State
        /// Whether this user has a service of their own, as `Config/install --user` makes it: it is meant, where it does not run.
        var hasOwnService = false
    }

    /// What the daemon says.
    enum Daemon: Sendable {
        /// No process answers at the socket.
        case notAsked
        /// It does not answer as it should; in words.
        case failed(String)
        /// The status, the peers, the groups, and the bytes of received files.
        case answers(ControlAPI.Status, peers: [ControlAPI.Peer], groups: [ControlAPI.Group], received: UInt64)

        /// The status, where there is one.
        var status: ControlAPI.Status? {
            guard case .answers(let status, _, _, _) = self else { return nil }
            return status
        }
    }

    /// What `earshotd --check-config` says.
    struct Settings: Hashable, Sendable {
        /// Whether `earshotd` was found.
        var isChecked: Bool
        /// The files that are there, with what is wrong with the first thing that is.
        var files: [File]

        struct File: Hashable, Sendable {
            var path: String
            var problem: String?
            /// Whether the problem may be this user's alone: the system's daemon runs as another, who may read and write other places.
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
        /// A tunnel: to one other machine, mostly without multicast by design.
        var isPointToPoint: Bool
        var addresses: [String]
    }

    enum PortUser: Hashable, Sendable {
        /// No process listens on it.
        case free
        /// A process that only root may see.
        case unknown
        case process(Int32, name: String)
    }

    /// A connection to one of our own addresses.
    struct Attempt: Hashable, Sendable {
        enum Result: Hashable, Sendable {
            case connected
            /// Nothing came back in time.
            case silence
            /// The kernel's word.
            case error(String)
        }

        var address: String
        var result: Result
    }

    enum Firewall: Sendable {
        case notPermitted
        /// No program that shows the rules.
        case noTool
        /// They could not be read; in words.
        case unreadable(String)
        case rules(NftRuleset)
    }

    struct Clock: Hashable, Sendable {
        var now: Date
        /// `nil` where the kernel does not say.
        var isSynchronised: Bool?
        /// Whether a program is there that would keep it right.
        var hasKeeper = true
    }

    enum Disk: Hashable, Sendable {
        /// Where the state is, is not known.
        case unknown
        /// In words.
        case failed(path: String, String)
        /// A file could be made there and not written; in words.
        case unwritable(path: String, String)
        case space(path: String, Space)

        struct Space: Hashable, Sendable {
            /// Bytes.
            var total: UInt64
            /// Bytes that the daemon may still use.
            var free: UInt64
            var isReadOnly: Bool
            /// 0 where the file system has none, and so no limit of them.
            var inodes: UInt64
            var freeInodes: UInt64
        }
    }
}
