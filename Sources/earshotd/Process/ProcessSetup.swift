internal import Glibc

/// What a daemon arranges for itself before anything else runs.
enum ProcessSetup {
    static func apply() {
        // Files and sockets are their owner's alone from their first moment.
        umask(0o077)
        // A client that goes away is an error of its connection, not of the process.
        signal(SIGPIPE, SIG_IGN)
        self.raiseDescriptorLimit()
    }

    /// Soft limit to hard limit: the soft one is low for select(2)'s sake, which nothing here calls.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
