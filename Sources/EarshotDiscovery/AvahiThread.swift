import CAvahi
import EarshotWaiting
import Glibc
import Synchronization

/// A separate thread for one Avahi client or server.
///
/// libavahi is not thread-safe and its calls block on D-Bus round trips, so neither an event loop nor the cooperative pool may make them.
/// All Avahi objects are created, used and freed inside `body`. Other code can only ask it to stop.
enum AvahiThread {
    /// Runs `body` on a new thread and returns its result, soon after the task is cancelled, because `body` then sees `isStopped`. The
    /// result is the reason why the work ended on its own, or `nil` if it was asked to.
    ///
    /// A daemon that hangs can hold `body` in a D-Bus call for 25 s. The caller does not wait that long: after `DiscoveryLimits.farewell`,
    /// or at once if the thread is known to hang, the thread is left to finish alone.
    static func run(
        isHung: @escaping @Sendable () -> Bool = { false }, _ body: @escaping @Sendable (AvahiLoop) -> String?
    ) async -> String? {
        let stop = StopSignal()
        let outcome = OneShot<String?>()
        return await withTaskCancellationHandler {
            let started = self.start {
                guard let loop = AvahiLoop(stop: stop) else { return outcome.settle("cannot make a poll loop for discovery") }
                let error = body(loop)
                loop.close()
                outcome.settle(error)
            }
            if !started { outcome.settle("cannot start a thread for discovery") }
            return await outcome.value()
        } onCancel: {
            stop.stop()
            // A thread that hangs sends no goodbye to wait for.
            if isHung() { return outcome.settle(nil) }
            // If this thread cannot be started either, the caller waits for the work to end.
            _ = self.start {
                sleep(DiscoveryLimits.farewell)
                outcome.settle(nil)
            }
        }
    }

    /// The signals of all loops that have not been told to stop.
    fileprivate static let loops = Mutex<[ObjectIdentifier: StopSignal]>([:])

    /// Calls back once every loop has completed an iteration; at once if there is none.
    static func answer(_ heartbeat: @escaping @Sendable () -> Void) {
        let loops = Array(self.loops.withLock { $0.values })
        let waiting = Countdown(loops.count, heartbeat)
        for loop in loops { loop.ask { waiting.oneAnswered() } }
    }

    /// Calls back once all the asked loops have answered.
    private final class Countdown: Sendable {
        private let left: Mutex<Int>
        private let done: @Sendable () -> Void

        init(_ count: Int, _ done: @escaping @Sendable () -> Void) {
            self.left = Mutex(count)
            self.done = done
            if count == 0 { done() }
        }

        func oneAnswered() {
            let isLast = self.left.withLock { left in
                left -= 1
                return left == 0
            }
            if isLast { self.done() }
        }
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread with every signal blocked: signals belong to the process, and libdbus's calls should not see them.
    private static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return false }
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        var all = sigset_t()
        var previous = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        let context = Unmanaged.passRetained(Body(run))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { raw in
                if let raw { Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run() }
                return nil
            }, context.toOpaque())
        if code != 0 { context.release() }
        return code == 0
    }
}

/// Asks a loop, from any thread, to stop or to give a sign of life.
final class StopSignal: Sendable {
    private struct State {
        var isStopped = false
        /// The simple poll's address as a number while the loop lives, and 0 before and after: a pointer would tie the state to the loop's
        /// thread. `avahi_simple_poll_wakeup` is the only Avahi call that may come from another thread. It is made under the lock that
        /// `detach` takes before the poll is freed.
        var poll: UInt = 0
        /// The callbacks for the loop's next iteration.
        var heartbeats: [@Sendable () -> Void] = []
    }
    private let state = Mutex(State())

    var isStopped: Bool { self.state.withLock { $0.isStopped } }

    func stop() {
        self.state.withLock { state in
            state.isStopped = true
            if let poll = OpaquePointer(bitPattern: state.poll) { avahi_simple_poll_wakeup(poll) }
        }
        // A stopped loop may be left behind in a call, so no caller waits for its answer.
        self.end()
    }

    /// Has the loop call back in its next iteration; at once if there is no loop.
    fileprivate func ask(_ heartbeat: @escaping @Sendable () -> Void) {
        let isWaiting = self.state.withLock { state in
            guard let poll = OpaquePointer(bitPattern: state.poll), !state.isStopped else { return false }
            state.heartbeats.append(heartbeat)
            avahi_simple_poll_wakeup(poll)
            return true
        }
        if !isWaiting { heartbeat() }
    }

    /// Calls back everyone who waits for this iteration.
    fileprivate func answer() {
        let heartbeats = self.state.withLock { state in
            defer { state.heartbeats = [] }
            return state.heartbeats
        }
        for heartbeat in heartbeats { heartbeat() }
    }

    fileprivate func attach(_ poll: OpaquePointer) {
        let address = UInt(bitPattern: poll)
        self.state.withLock { $0.poll = address }
        AvahiThread.loops.withLock { $0[ObjectIdentifier(self)] = self }
    }

    fileprivate func detach() {
        self.state.withLock { $0.poll = 0 }
        self.end()
    }

    private func end() {
        AvahiThread.loops.withLock { $0[ObjectIdentifier(self)] = nil }
        self.answer()
    }
}

/// The poll loop of one Avahi thread; it never leaves that thread.
final class AvahiLoop {
    private let simplePoll: OpaquePointer
    private let stop: StopSignal

    fileprivate init?(stop: StopSignal) {
        guard let poll = avahi_simple_poll_new() else { return nil }
        self.simplePoll = poll
        self.stop = stop
        stop.attach(poll)
    }

    /// The poll API for Avahi's constructors.
    var poll: UnsafePointer<AvahiPoll>? { avahi_simple_poll_get(self.simplePoll) }

    var isStopped: Bool { self.stop.isStopped }

    /// Lets Avahi work until something happens, or for `limit` at most. Returns `false` if polling itself failed.
    func wait(atMost limit: Duration) -> Bool {
        let (seconds, attoseconds) = limit.components
        let milliseconds = min(max(seconds, 0), 3_600) * 1_000 + attoseconds / 1_000_000_000_000_000
        // Rounded up, so that the deadline has passed when the wait ends.
        defer { self.stop.answer() }
        return avahi_simple_poll_iterate(self.simplePoll, CInt(clamping: max(milliseconds, 0) + (limit > .zero ? 1 : 0))) >= 0
    }

    /// Frees the poll. All objects that were made with it must be freed before.
    fileprivate func close() {
        self.stop.detach()
        avahi_simple_poll_free(self.simplePoll)
    }
}
