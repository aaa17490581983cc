internal import CLinux
internal import Glibc

/// Runs an actor on a thread of its own, so that its blocking calls (fsync, disk reads) block no other task.
///
/// The cooperative pool has as many threads as the machine has cores, so an fsync there would occupy one core's share. The thread keeps
/// the executor alive. The actor that owns it calls `stop()` in its `deinit`, after which the thread completes the queued work and ends.
///
/// Unchecked: all mutable state is in `queue`, `isStopped`, `isAsleep` and `thread`, which are used only between `pthread_mutex_lock` and
/// `_unlock` of `mutex`. `mutex` and `condition` are heap memory that lives as long as the executor, and are designed for several threads.
package final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let name: String
    private let isBulk: Bool
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var queue: [Work] = []
    private var isStopped = false
    /// Whether the thread waits for a signal.
    private var isAsleep = false
    /// The thread, once it runs.
    private var thread: pthread_t?

    /// Starts the thread. `top` and a debugger show its name, which has at most 15 bytes. A thread for bulk work yields to every other
    /// thread that wakes up, because a message must not wait for the end of its time slice.
    package init(name: String, isBulk: Bool = false) throws(EarshotError) {
        self.name = name
        self.isBulk = isBulk
        self.mutex = .allocate(capacity: 1)
        self.condition = .allocate(capacity: 1)
        pthread_mutex_init(self.mutex, nil)
        pthread_cond_init(self.condition, nil)
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        defer { pthread_attr_destroy(&attributes) }
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(self)
        let result = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<ThreadExecutor>.fromOpaque(argument).takeRetainedValue().work()
                return nil
            }, retained.toOpaque())
        guard result == 0 else {
            retained.release()
            throw EarshotError(.unavailable, "cannot start the thread \(name): too many threads, or too little memory")
        }
    }

    deinit {
        pthread_cond_destroy(self.condition)
        pthread_mutex_destroy(self.mutex)
        self.condition.deallocate()
        self.mutex.deallocate()
    }

    /// Queues a job of the actor.
    package func enqueue(_ job: consuming ExecutorJob) {
        self.add(.job(UnownedJob(job)))
    }

    /// Queues a call from outside the actor, in order with its jobs.
    package func run(_ call: @escaping @Sendable () -> Void) {
        self.add(.call(call))
    }

    private func add(_ work: Work) {
        // Keeps the executor alive: once the thread has the work, it may be released together with it.
        let retained = Unmanaged.passRetained(self)
        defer { retained.release() }
        pthread_mutex_lock(self.mutex)
        self.queue.append(work)
        let isAsleep = self.isAsleep
        pthread_mutex_unlock(self.mutex)
        // Signalled after unlocking. A thread that wakes up on this processor while the mutex is locked would have to wait again
        // immediately, and be woken twice.
        if isAsleep { pthread_cond_signal(self.condition) }
    }

    /// Ends the process if the caller is not on the thread.
    package func checkIsolated() {
        pthread_mutex_lock(self.mutex)
        let thread = self.thread
        pthread_mutex_unlock(self.mutex)
        precondition(thread.map { pthread_equal($0, pthread_self()) != 0 } == true, "not on the thread \(self.name)")
    }

    /// Returns the executor for the actor's `unownedExecutor`.
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Ends the thread when all queued work has run. Only for the `deinit` of the owning actor: nothing can be queued after this.
    package func stop() {
        pthread_mutex_lock(self.mutex)
        self.isStopped = true
        pthread_cond_signal(self.condition)
        pthread_mutex_unlock(self.mutex)
    }

    private func work() {
        earshot_name_thread(self.name)
        if self.isBulk { earshot_take_long_turns() }
        pthread_mutex_lock(self.mutex)
        self.thread = pthread_self()
        pthread_mutex_unlock(self.mutex)
        var jobs: [Work] = []
        while true {
            pthread_mutex_lock(self.mutex)
            while self.queue.isEmpty, !self.isStopped {
                self.isAsleep = true
                pthread_cond_wait(self.condition, self.mutex)
                self.isAsleep = false
            }
            swap(&jobs, &self.queue)
            pthread_mutex_unlock(self.mutex)
            if jobs.isEmpty { return }
            for work in jobs {
                switch work {
                case .job(let job): job.runSynchronously(on: self.asUnownedSerialExecutor())
                case .call(let call): call()
                }
            }
            jobs.removeAll(keepingCapacity: true)
        }
    }
}

/// Runs the parts of a task on a thread, where they may block.
private final class ThreadTasks: TaskExecutor {
    private let thread: ThreadExecutor

    init(on thread: ThreadExecutor) { self.thread = thread }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.thread.run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

extension ThreadExecutor {
    /// Runs work that blocks on a thread of its own, from its first step on, for bulk work.
    /// - Throws: `unavailable` if the thread cannot be started, and the errors of `work`.
    static func blocking<Value: Sendable>(_ name: String, _ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let thread = try ThreadExecutor(name: name, isBulk: true)
        defer { thread.stop() }
        // A child task begins on its executor. `withTaskExecutorPreference` would leave the steps before the first suspension where they are,
        // on a thread of the pool.
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask(executorPreference: ThreadTasks(on: thread)) { try await work() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}
