internal import CLinux
internal import Glibc
internal import Synchronization

/// The second line of defence behind `SafeName` and `SafeDirectory`: the kernel lets this process change files only in the places that it
/// named at its start (Landlock, landlock(7)). Reading is not restricted.
///
/// The confinement applies to the calling thread and to all threads that it starts afterwards, permanently. A process therefore confines
/// itself before it has a second thread. A directory that becomes known later, because the user may change the setting while the daemon
/// runs, is accessed with `reaching`: on a separate thread that is confined to exactly that directory.
package enum Confinement {
    /// A directory, with the permitted changes below it.
    package enum Place: Sendable {
        /// All changes.
        case changes(SafeDirectory)
        /// Creating sockets, and removing entries.
        case sockets(SafeDirectory)
    }

    /// The thread that starts unconfined threads; set once the process has confined itself.
    private static let outside = Mutex<OutsideThread?>(nil)

    /// Whether the kernel has a Landlock version that permits moving files (2, Linux 5.19).
    package static var isAvailable: Bool { earshot_landlock_version() > 0 }

    /// Confines the calling thread and all threads that it starts from now on, which is the whole process if it has no other. Called once
    /// per process. Returns `false` if the kernel does not support that; nothing has changed then.
    package static func confineProcess(to places: [Place]) throws(FileError) -> Bool {
        guard self.isAvailable else { return false }
        let thread = try OutsideThread()
        try self.confineThread(to: places)
        self.outside.withLock { $0 = thread }
        return true
    }

    /// Confines the calling thread and all threads that it starts from now on.
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
        // Libraries may write to /dev/null.
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        if null >= 0 {
            _ = earshot_landlock_allow_writing(ruleset, null)
            close(null)
        }
        guard earshot_landlock_enter(ruleset) == 0 else { throw FileError("enter", "a Landlock ruleset") }
    }

    /// Performs work on a thread that may change files only below these directories, and waits for it. If the process is not confined, the
    /// work runs on the calling thread.
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
