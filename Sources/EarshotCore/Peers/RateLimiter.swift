/// A rate limit on each of many keys: a burst at once, then one event per interval (the generic cell rate algorithm, ITU-T I.371).
///
/// Pure: the caller passes the time. For each key, the limiter stores the time at which its allowance is full again; a key with a full
/// allowance is idle and is not stored. If there are more keys than `capacity`, the keys closest to idle are evicted, so that new keys
/// displace little of the others' history.
package struct RateLimiter<Key: Sendable & Hashable>: Sendable {
    /// The number of events that may come at once, at least 1.
    package let burst: Int
    /// The time between two events after a burst.
    package let interval: Duration
    /// The number of keys remembered, at least 4.
    package let capacity: Int
    private var restTimes: [Key: MonotonicInstant] = [:]

    package init(burst: Int, interval: Duration, capacity: Int) {
        self.burst = max(1, burst)
        self.interval = interval
        self.capacity = max(4, capacity)
    }

    /// The number of keys remembered.
    package var count: Int { self.restTimes.count }

    /// Whether the key is within its limit now. Does not count an event.
    package func allows(_ key: Key, at now: MonotonicInstant) -> Bool {
        guard let restTime = self.restTimes[key] else { return true }
        return restTime <= now + self.interval * (self.burst - 1)
    }

    /// Counts an event of the key.
    package mutating func note(_ key: Key, at now: MonotonicInstant) {
        if self.restTimes[key] == nil, self.restTimes.count >= self.capacity { self.makeRoom(at: now) }
        self.restTimes[key] = max(self.restTimes[key] ?? now, now) + self.interval
    }

    /// Evicts idle keys; if none is idle, the quarter closest to idle. Runs seldom enough to cost little per key.
    private mutating func makeRoom(at now: MonotonicInstant) {
        self.restTimes = self.restTimes.filter { $0.value > now }  // order does not show: each key is judged alone
        guard self.restTimes.count >= self.capacity else { return }
        let latest = self.restTimes.values.sorted()[self.capacity / 4]  // order does not show: times are taken, and sorted
        self.restTimes = self.restTimes.filter { $0.value > latest }  // order does not show: each key is judged alone
    }
}
