import CAvahi
import Earshot
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Runs one backend on its Avahi thread until the task is cancelled, and restarts it if the thread ends before.
struct BackendRunner: Sendable {
    /// Takes a report; returns `false` if there was no room for it.
    typealias Report = @Sendable (BackendReport) -> Bool

    let run: @Sendable (DiscoveryPlan, @escaping Report) async -> Void

    /// Returns a runner for the system's avahi-daemon.
    static func avahi(logger: Logger) -> BackendRunner {
        // Loaded here rather than on first use, because the process may by then have dropped its access to the library's file. Never
        // unloaded.
        var library = earshot_avahi_client()
        _ = earshot_avahi_client_load(&library)
        return BackendRunner { plan, report in
            let missing = "cannot load libavahi-client.so.3; install libavahi-client3, or set the discovery backend to embedded"
            await self.run(.avahi, plan: plan, logger: logger, missing: missing, report: report) { AvahiClientLink(loop: $0) }
        }
    }

    /// Returns a runner for libavahi-core in this process.
    static func embedded(logger: Logger) -> BackendRunner {
        var library = earshot_avahi_core()
        _ = earshot_avahi_core_load(&library)
        return BackendRunner { plan, report in
            let missing = "cannot load libavahi-core.so.7; install libavahi-core7, or set the discovery backend to avahi"
            await self.run(.embedded, plan: plan, logger: logger, missing: missing, report: report) {
                AvahiServerLink(loop: $0, logger: logger)
            }
        }
    }

    private static func run(
        _ backend: DiscoveryStatus.Backend, plan: DiscoveryPlan, logger: Logger, missing: String, report: @escaping Report,
        makeLink: @escaping @Sendable (AvahiLoop) -> (any AvahiLink)?
    ) async {
        var lastError: String?
        while !Task.isCancelled {
            let pulse = SharedPulse()
            let error = await self.watching(pulse, backend: backend, report: report) {
                await AvahiThread.run(isHung: { pulse.isSilent }) { loop in
                    guard let link = makeLink(loop) else { return missing }
                    // A thread that was left behind in a call must not report afterwards.
                    let engine = AvahiEngine(backend: backend, plan: plan, link: link, logger: logger) { loop.isStopped || report($0) }
                    defer { engine.stop() }
                    while !loop.isStopped {
                        pulse.began()
                        var next = engine.work(now: pulse.now)
                        if pulse.ended() {
                            engine.sayAgain()
                            next = .zero
                        }
                        guard loop.wait(atMost: next - pulse.now) else { return "discovery's poll loop failed" }
                    }
                    return nil
                }
            }
            guard let error, !Task.isCancelled else { continue }
            if error != lastError { logger.error("\(error)") }
            lastError = error
            _ = report(.reachable(false))
            _ = report(.event(.reset(backend)))
            _ = report(.event(.status(DiscoveryStatus(backend: backend, state: .unavailable, error: error))))
            try? await TimerClock().sleep(for: DiscoveryLimits.reconnect)
        }
    }

    /// Reports a thread that does not return from a call, while `work` runs.
    private static func watching(
        _ pulse: SharedPulse, backend: DiscoveryStatus.Backend, report: @escaping Report, _ work: @escaping @Sendable () async -> String?
    ) async -> String? {
        let watch = CallWatch(pulse) { silence in
            let failure = AvahiFailure(code: Int32(AVAHI_ERR_TIMEOUT), attempt: "discover peers")
            _ = report(.unanswered(for: silence))
            _ = report(.event(.status(DiscoveryStatus(backend: backend, state: .unavailable, error: failure.message))))
        }
        watch.start()
        let error = await work()
        watch.end()
        return error
    }
}

/// Watches for a call that does not return, during one run of a backend's thread. Nothing is reported after the next run has begun. It uses
/// a timer instead of a task, because an idle daemon should be woken no more than once.
private final class CallWatch: Sendable {
    private struct State {
        var isOver = false
        var timer: Scheduled<Void>?
    }

    private let state = Mutex(State())
    private let pulse: SharedPulse
    private let tell: @Sendable (Duration) -> Void
    private let eventLoop = MultiThreadedEventLoopGroup.singleton.any()

    init(_ pulse: SharedPulse, _ tell: @escaping @Sendable (_ silence: Duration) -> Void) {
        self.pulse = pulse
        self.tell = tell
    }

    func start() { self.state.withLock { self.checkLater(&$0) } }

    func end() {
        self.state.withLock { state in
            state.isOver = true
            state.timer?.cancel()
        }
    }

    private func checkLater(_ state: inout State) {
        state.timer = self.eventLoop.scheduleTask(in: TimeAmount(self.pulse.untilNextCheck)) { self.check() }
    }

    private func check() {
        self.state.withLock { state in
            guard !state.isOver else { return }
            if let silence = self.pulse.check() { self.tell(silence) }
            self.checkLater(&state)
        }
    }
}

/// The stream behind a backend's `events`, and the code that the backends share.
struct DiscoveryOutput: Sendable {
    let events: AsyncStream<DiscoveryEvent>
    private let continuation: AsyncStream<DiscoveryEvent>.Continuation

    init() {
        (self.events, self.continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(DiscoveryLimits.waitingEvents))
    }

    /// Emits an event; returns `false` if the reader is too far behind.
    func emit(_ event: DiscoveryEvent) -> Bool {
        if case .dropped = self.continuation.yield(event) { return false }
        return true
    }

    func finish() {
        self.continuation.finish()
    }

    /// Runs one backend with the whole plan. If there is nothing to do, reports that and waits.
    func run(_ runner: BackendRunner, as backend: DiscoveryStatus.Backend, plan: DiscoveryPlan) async {
        if plan == .probe {
            await self.stayOff(as: backend)
        } else {
            await runner.run(plan) { report in
                if case .event(let event) = report { return self.emit(event) }
                return true
            }
        }
        self.finish()
    }

    /// Reports `off`, because neither advertising nor browsing was requested, and waits for cancellation.
    func stayOff(as backend: DiscoveryStatus.Backend) async {
        _ = self.emit(.status(DiscoveryStatus(backend: backend, state: .off)))
        // Nothing is ever sent: the loop ends with the task.
        let (never, continuation) = AsyncStream<Never>.makeStream()
        for await _ in never {}
        continuation.finish()
    }
}
