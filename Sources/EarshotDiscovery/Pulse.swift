import Synchronization

/// Whether an Avahi thread is in a call that does not come back, as seen from outside: a value without a clock; times are since the start.
struct Pulse {
    private var busySince: Duration?
    private var answeredAt = Duration.zero
    private(set) var isSilent = false

    /// The thread leaves its poll loop to work.
    mutating func began(now: Duration) {
        self.busySince = now
    }

    /// The thread is back in its poll loop; true where it had been given up.
    mutating func ended(now: Duration) -> Bool {
        self.busySince = nil
        self.answeredAt = now
        defer { self.isSilent = false }
        return self.isSilent
    }

    /// How long nothing has been heard, once that is worth telling; told once a silence.
    mutating func check(now: Duration) -> Duration? {
        guard !self.isSilent, let busySince = self.busySince, now - busySince >= DiscoveryLimits.callPatience else { return nil }
        self.isSilent = true
        return now - self.answeredAt
    }

    /// When to check next. The thread works once in each `DiscoveryLimits.pulse`, so that a call which does not come back has begun by then, and
    /// an idle daemon is woken up for this no more often than that.
    func nextCheck(now: Duration) -> Duration {
        let patience = DiscoveryLimits.callPatience
        if !self.isSilent, let busySince = self.busySince { return busySince + patience }
        return max(self.answeredAt + DiscoveryLimits.pulse, now) + patience
    }
}

/// The pulse of one run of an Avahi thread, shared with its watcher.
final class SharedPulse: Sendable {
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private let pulse = Mutex(Pulse())

    init() { self.start = self.clock.now }

    /// Since the run's beginning.
    var now: Duration { self.start.duration(to: self.clock.now) }

    var isSilent: Bool { self.pulse.withLock { $0.isSilent } }

    func began() { self.pulse.withLock { $0.began(now: self.now) } }

    func ended() -> Bool { self.pulse.withLock { $0.ended(now: self.now) } }

    func check() -> Duration? { self.pulse.withLock { $0.check(now: self.now) } }

    /// How long from now until it is to be checked.
    var untilNextCheck: Duration {
        let now = self.now
        return self.pulse.withLock { $0.nextCheck(now: now) } - now
    }
}
