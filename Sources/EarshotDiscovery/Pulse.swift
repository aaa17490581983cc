import Synchronization

/// Detects that an Avahi thread is in a call that does not return, as seen from outside. A value without a clock; times are since the
/// start.
struct Pulse {
    private var busySince: Duration?
    private var answeredAt = Duration.zero
    private(set) var isSilent = false

    /// Records that the thread has left its poll loop to work.
    mutating func began(now: Duration) {
        self.busySince = now
    }

    /// Records that the thread is back in its poll loop. Returns whether it had been reported as silent.
    mutating func ended(now: Duration) -> Bool {
        self.busySince = nil
        self.answeredAt = now
        defer { self.isSilent = false }
        return self.isSilent
    }

    /// Returns how long the thread has been silent, once that is worth reporting; at most once per silence.
    mutating func check(now: Duration) -> Duration? {
        guard !self.isSilent, let busySince = self.busySince, now - busySince >= DiscoveryLimits.callPatience else { return nil }
        self.isSilent = true
        return now - self.answeredAt
    }

    /// Returns the time of the next check. The thread works once in each `DiscoveryLimits.pulse`, so a call that hangs has begun by then,
    /// and an idle daemon is not woken more often.
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

    /// The time since the run's beginning.
    var now: Duration { self.start.duration(to: self.clock.now) }

    var isSilent: Bool { self.pulse.withLock { $0.isSilent } }

    func began() { self.pulse.withLock { $0.began(now: self.now) } }

    func ended() -> Bool { self.pulse.withLock { $0.ended(now: self.now) } }

    func check() -> Duration? { self.pulse.withLock { $0.check(now: self.now) } }

    /// The time from now until the next check.
    var untilNextCheck: Duration {
        let now = self.now
        return self.pulse.withLock { $0.nextCheck(now: now) } - now
    }
}
