import CAvahi
import Glibc
import Synchronization

/// A thread of its own for one Avahi client or server.
///
/// libavahi is not thread-safe and its calls block on D-Bus round trips, so that neither an event loop nor the cooperative pool may
/// make them. Everything Avahi is made, used and freed inside `body`; outside knows only how to ask it to stop.
enum AvahiThread {
    /// Runs `body` on a new thread and returns what it returned: soon after the task is cancelled, for `body` then sees `isStopped`.
    /// The result is why the work ended without having been asked to, `nil` where it was.
    ///
    /// A daemon that hangs can hold `body` in a D-Bus call for 25 s. The caller does not wait that long for the end: past
    /// `DiscoveryLimits.farewell`, or at once where it is known to hang, the thread is left to finish by itself.
    static func run(
        isHung: @escaping @Sendable () -> Bool = { false }, _ body: @escaping @Sendable (AvahiLoop) -> String?
    ) async -> String? {
        let stop = StopSignal()
        let outcome = Outcome()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                outcome.wait(continuation)
                let started = self.start {
                    guard let loop = AvahiLoop(stop: stop) else { return outcome.set("cannot make a poll loop for discovery") }
                    let error = body(loop)
                    loop.close()
                    outcome.set(error)
                }
                if !started { outcome.set("cannot start a thread for discovery") }
            }
        } onCancel: {
            stop.stop()
            // There is no goodbye to wait for.
            if isHung() { return outcome.set(nil) }
            // Should this thread not start either, the end only comes later.
            _ = self.start {
                sleep(DiscoveryLimits.farewell)
                outcome.set(nil)
            }
        }
    }

    /// Every loop of the process that has not been told to stop.
    fileprivate static let loops = Mutex<[ObjectIdentifier: StopSignal]>([:])

    /// Calls back once every loop has come round; at once where there is none.
    static func answer(_ heartbeat: @escaping @Sendable () -> Void) {
        let loops = Array(self.loops.withLock { $0.values })
        let waiting = Countdown(loops.count, heartbeat)
        for loop in loops { loop.ask { waiting.oneAnswered() } }
    }

    /// Calls back once as many have answered as were asked.
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

    /// Resumes the one who waits, once, with the first result.
    private final class Outcome: Sendable {
        private enum State {
            case idle
            case waiting(CheckedContinuation<String?, Never>)
            case set(String?)
        }
        private let state = Mutex(State.idle)

        func wait(_ continuation: CheckedContinuation<String?, Never>) {
            let result: String?? = self.state.withLock { state in
                if case .set(let result) = state { return .some(result) }
                state = .waiting(continuation)
                return .none
            }
            if let result { continuation.resume(returning: result) }
        }

        func set(_ result: String?) {
            let continuation: CheckedContinuation<String?, Never>? = self.state.withLock { state in
                switch state {
                case .idle:
                    state = .set(result)
                    return nil
                case .waiting(let continuation):
                    state = .set(result)
                    return continuation
                case .set: return nil
                }
            }
            continuation?.resume(returning: result)
        }
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread with every signal blocked: signals are the process's affair, and libdbus's calls should not see them.
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

/// Asks a loop to stop, or for a sign of life, from any thread.
final class StopSignal: Sendable {
    private struct State {
        var isStopped = false
        /// The simple poll's address as a number while the loop lives, 0 before and after: a pointer would tie the state to the
        /// loop's thread. `avahi_simple_poll_wakeup` is the one call of Avahi's that may come from elsewhere, and it is made
        /// under the lock that `detach` takes before the poll is freed.
        var poll: UInt = 0
        /// Those who want to hear when the loop comes round.
        var heartbeats: [@Sendable () -> Void] = []
    }
    private let state = Mutex(State())

    var isStopped: Bool { self.state.withLock { $0.isStopped } }

    func stop() {
        self.state.withLock { state in
            state.isStopped = true
            if let poll = OpaquePointer(bitPattern: state.poll) { avahi_simple_poll_wakeup(poll) }
        }
        // One that is to stop may be left behind in a call; no caller waits for its answer.
        self.end()
    }

    /// Has the loop call back when it comes round; at once where there is none any more.
    fileprivate func ask(_ heartbeat: @escaping @Sendable () -> Void) {
        let isWaiting = self.state.withLock { state in
            guard let poll = OpaquePointer(bitPattern: state.poll), !state.isStopped else { return false }
            state.heartbeats.append(heartbeat)
            avahi_simple_poll_wakeup(poll)
            return true
        }
        if !isWaiting { heartbeat() }
    }

    /// The loop has come round.
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

/// The poll loop of one Avahi thread; never leaves that thread.
final class AvahiLoop {
    private let simplePoll: OpaquePointer
    private let stop: StopSignal

    fileprivate init?(stop: StopSignal) {
        guard let poll = avahi_simple_poll_new() else { return nil }
        self.simplePoll = poll
        self.stop = stop
        stop.attach(poll)
    }

    /// What Avahi's constructors take.
    var poll: UnsafePointer<AvahiPoll>? { avahi_simple_poll_get(self.simplePoll) }

    var isStopped: Bool { self.stop.isStopped }

    /// Lets Avahi work until something has happened, or for `limit` at most. False when polling itself failed.
    func wait(atMost limit: Duration) -> Bool {
        let (seconds, attoseconds) = limit.components
        let milliseconds = min(max(seconds, 0), 3_600) * 1_000 + attoseconds / 1_000_000_000_000_000
        // Rounded up, so that a deadline has passed when the wait for it is over.
        defer { self.stop.answer() }
        return avahi_simple_poll_iterate(self.simplePoll, CInt(clamping: max(milliseconds, 0) + (limit > .zero ? 1 : 0))) >= 0
    }

    /// Frees the poll; everything that was made with it must be gone.
    fileprivate func close() {
        self.stop.detach()
        avahi_simple_poll_free(self.simplePoll)
    }
}
