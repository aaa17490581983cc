internal import CLinux
internal import Glibc
internal import Synchronization

/// The second line of defence behind `SafeName` and `SafeDirectory`: the kernel lets this process change files only where it said at its
/// start that it would (Landlock, landlock(7)). Reading stays as free as it was.
///
/// It holds for threads: for the one that asks and for all that it makes afterwards, for good. So a process confines itself before it has a
/// second thread. What must reach a directory that is known only later, since a person may change the setting while the daemon runs, is
/// done by `reaching`: on a thread of its own that is confined to exactly that directory.
package enum Confinement {
    /// A directory, and what may be done below it.
    package enum Place: Sendable {
        /// Everything.
        case changes(SafeDirectory)
        /// Sockets may be made, and what is there removed.
        case sockets(SafeDirectory)
    }

    /// Makes threads that are not confined yet; there once the process has confined itself.
    private static let outside = Mutex<OutsideThread?>(nil)

    /// Whether the kernel has Landlock, in a version under which files can still be moved (2, Linux 5.19).
    package static var isAvailable: Bool { earshot_landlock_version() > 0 }

    /// Confines the calling thread and all that it makes from now on, that is the process if it has no other; `false` where the kernel
    /// cannot, and everything stays as it was. Once a process.
    package static func confineProcess(to places: [Place]) throws(FileError) -> Bool {
        guard self.isAvailable else { return false }
        let thread = try OutsideThread()
        try self.confineThread(to: places)
        self.outside.withLock { $0 = thread }
        return true
    }

    /// Confines the calling thread and all that it makes from now on.
    package static func confineThread(to places: [Place]) throws(FileError) {
        let ruleset = earshot_landlock_ruleset()
        guard ruleset >= 0 else { throw FileError("make", "a Landlock ruleset") }
        defer { close(ruleset) }
        for place in places {
            let (allowed, path) =
                switch place {
                case .changes(let directory): (earshot_landlock_allow(ruleset, directory.descriptor), directory.path)
                case .sockets(let directory): (earshot_landlock_allow_sockets(ruleset, directory.descriptor), directory.path)
                }
            guard allowed == 0 else { throw FileError("confine writing to", path) }
        }
        // Libraries may throw things away.
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        if null >= 0 {
            _ = earshot_landlock_allow_writing(ruleset, null)
            close(null)
        }
        guard earshot_landlock_enter(ruleset) == 0 else { throw FileError("enter", "a Landlock ruleset") }
    }

    /// Does the work on a thread that may change files below these directories and nowhere else, and waits for it; at once, on the calling
    /// thread, where the process is not confined.
    package static func reaching<Value: Sendable>(
        _ directories: [SafeDirectory], _ work: @escaping @Sendable () throws -> Value
    ) throws -> Value {
        guard let outside = self.outside.withLock({ $0 }) else { return try work() }
        return try outside.perform {
            try self.confineThread(to: directories.map { .changes($0) })
            return try work()
        }
    }
}
