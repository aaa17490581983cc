internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread that was started before the process confined itself. It only starts other threads, which inherit its state and are unconfined.
///
/// No Swift concurrency runs on it or on the threads that it starts, since waking a task may start a thread of the pool.
final class OutsideThread: Sendable {
    /// Work for a new thread, with the semaphore to signal if the thread cannot be started.
    private struct Errand: Sendable {
        let work: @Sendable () -> Void
        let end: Semaphore
    }

    private final class Outcome<Value: Sendable>: Sendable {
        let result = Mutex<Result<Value, any Error>?>(nil)
    }

    private let errands = Mutex<[Errand]>([])
    private let waiting = Semaphore()

    /// Starts the thread, which lives as long as the process.
    init() throws(FileError) {
        guard Self.start({ self.run() }) else { throw FileError("start", "a thread", code: EAGAIN) }
    }

    /// Performs work on a new thread, and waits for it.
    func perform<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) throws -> Value {
        let outcome = Outcome<Value>()
        let end = Semaphore()
        let errand = Errand(
            work: {
                let result = Result { try work() }
                outcome.result.withLock { $0 = result }
                end.post()
            }, end: end)
        self.errands.withLock { $0.append(errand) }
        self.waiting.post()
        end.wait()
        guard let result = outcome.result.withLock({ $0 }) else { throw FileError("start", "a thread", code: EAGAIN) }
        return try result.get()
    }

    private func run() {
        earshot_name_thread("earshot-outside")
        while true {
            self.waiting.wait()
            guard let next = self.errands.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { continue }
            // The work never runs on this thread, which would then be confined.
            if !Self.start(next.work) { next.end.post() }
        }
    }

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread; returns whether it runs.
    private static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        defer { pthread_attr_destroy(&attributes) }
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(Body(body))
        let result = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        if result != 0 { retained.release() }
        return result == 0
    }
}

/// A counting semaphore (sem_overview(7)) for threads that are not Swift's own.
///
/// Unchecked: `sem_t` is made for use by several threads, and lives as long as this object.
final class Semaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    init() {
        self.semaphore = .allocate(capacity: 1)
        sem_init(self.semaphore, 0, 0)
    }

    deinit {
        sem_destroy(self.semaphore)
        self.semaphore.deallocate()
    }

    func post() { sem_post(self.semaphore) }

    func wait() {
        while sem_wait(self.semaphore) != 0 && errno == EINTR {}
    }
}
