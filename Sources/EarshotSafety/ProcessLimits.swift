internal import Glibc

/// The resource limits that a process was started with (setrlimit(2)), and how both programs live with them.
package enum ProcessLimits {
    /// Makes a write beyond the limit on file sizes (`RLIMIT_FSIZE`, `ulimit -f`, a unit's `LimitFSIZE=`) fail with `EFBIG`, as a full disk
    /// does, instead of ending the process by SIGXFSZ. Programs that this process starts inherit that.
    package static func ignoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN) }

    /// Raises the soft limit on open files to the hard limit: the soft limit is low for the sake of select(2), which nothing here calls.
    private static func raiseDescriptorLimit() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    /// Raises the soft limit on open files, then checks that so many more files can be opened and so many threads be started. The libraries
    /// of both programs end the process in the middle of its work when they run out of either.
    /// - Throws: which of the two is missing, and the limit to raise.
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

    /// How many files can be opened, where that is fewer than `count`.
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

    /// How many threads can be started, where that is fewer than `count`. None of them does anything.
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

/// A process may have too little of something to do its work.
package struct ProcessLimitError: Error, Hashable, Sendable, CustomStringConvertible {
    /// How many are needed.
    package let needed: Int
    /// How many can be had.
    package let available: Int
    let what: String
    let limit: String

    /// One lower-case sentence.
    package var description: String {
        "this process can have only \(self.available) more \(self.what) and needs \(self.needed); raise the limit: \(self.limit)"
    }
}
