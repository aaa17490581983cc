internal import Glibc

/// The resource limits of a process (setrlimit(2)), and how both programs handle them.
package enum ProcessLimits {
    /// Makes a write beyond the limit on file sizes (`RLIMIT_FSIZE`, `ulimit -f`, a unit's `LimitFSIZE=`) fail with `EFBIG`, like a full
    /// disk, instead of ending the process by SIGXFSZ. Child processes inherit that.
    package static func ignoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN) }

    /// Raises the soft limit on open files to the hard limit. The soft limit is low for the sake of select(2), which no code here calls.
    private static func raiseDescriptorLimit() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    /// Raises the soft limit on open files, then checks that the given numbers of files can be opened and threads started. Otherwise the
    /// libraries of both programs would end the process during its work.
    /// - Throws: The missing resource, and the limit to raise.
    package static func require(descriptors: Int, threads: Int = 0) throws(ProcessLimitError) {
        self.raiseDescriptorLimit()
        if let available = self.descriptors(atMost: descriptors) {
            throw ProcessLimitError(needed: descriptors, available: available, what: "files", limit: "ulimit -n, or LimitNOFILE= in a unit")
        }
        if let available = self.threads(atMost: threads) {
            throw ProcessLimitError(
                needed: threads, available: available, what: "threads", limit: "ulimit -u, or LimitNPROC= and TasksMax= in a unit")
        }
    }

    /// Returns how many files can be opened, if fewer than `count`.
    private static func descriptors(atMost count: Int) -> Int? {
        var opened: [CInt] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count {
            let descriptor = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard descriptor >= 0 else { return opened.count }
            opened.append(descriptor)
        }
        return nil
    }

    /// Returns how many threads can be started, if fewer than `count`. The threads do nothing.
    private static func threads(atMost count: Int) -> Int? {
        let end = Semaphore()
        var started: [pthread_t] = []
        defer {
            for _ in started { end.post() }
            for thread in started { pthread_join(thread, nil) }
        }
        while started.count < count {
            var thread = pthread_t()
            let retained = Unmanaged.passRetained(end)
            let code = pthread_create(
                &thread, nil,
                { argument in
                    if let argument { Unmanaged<Semaphore>.fromOpaque(argument).takeRetainedValue().wait() }
                    return nil
                }, retained.toOpaque())
            guard code == 0 else {
                retained.release()
                return started.count
            }
            started.append(thread)
        }
        return nil
    }
}

/// The error for a process whose limits are too low for its work.
package struct ProcessLimitError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The needed number.
    package let needed: Int
    /// The available number.
    package let available: Int
    let what: String
    let limit: String

    /// One lower-case sentence.
    package var description: String {
        "this process can have only \(self.available) more \(self.what) and needs \(self.needed); raise the limit: \(self.limit)"
    }
}
