/// How often each of many may do something: so many at once, then one an interval (the generic cell rate algorithm, ITU-T I.371).
///
/// Pure, with the time handed in. Of each key it keeps the time at which its allowance is whole again; a key at rest is not kept. Of more
/// keys than `capacity` those that are nearest to rest are forgotten, so that fresh keys take little from the memory of the others.
package struct RateLimiter<Key: Sendable & Hashable>: Sendable {
    /// How many may come at once, at least 1.
    package let burst: Int
    /// After those, the time between two.
    package let interval: Duration
    /// Keys remembered, at least 4.
    package let capacity: Int
    private var restTimes: [Key: MonotonicInstant] = [:]

    package init(burst: Int, interval: Duration, capacity: Int) {
        self.burst = max(1, burst)
        self.interval = interval
        self.capacity = max(4, capacity)
    }

    /// How many keys are remembered.
    package var count: Int { self.restTimes.count }

    /// Whether the key may do it now; says nothing of whether it does.
    package func allows(_ key: Key, at now: MonotonicInstant) -> Bool {
        guard let restTime = self.restTimes[key] else { return true }
        return restTime <= now + self.interval * (self.burst - 1)
    }

    /// The key does it.
    package mutating func note(_ key: Key, at now: MonotonicInstant) {
        if self.restTimes[key] == nil, self.restTimes.count >= self.capacity { self.makeRoom(at: now) }
        self.restTimes[key] = max(self.restTimes[key] ?? now, now) + self.interval
    }

    /// Forgets those at rest; where there are none, the quarter that is nearest to it. Seldom enough to cost little for each key.
    private mutating func makeRoom(at now: MonotonicInstant) {
        self.restTimes = self.restTimes.filter { $0.value > now }  // order does not show: each key is judged alone
        guard self.restTimes.count >= self.capacity else { return }
        let latest = self.restTimes.values.sorted()[self.capacity / 4]  // order does not show: times are taken, and sorted
        self.restTimes = self.restTimes.filter { $0.value > latest }  // order does not show: each key is judged alone
    }
}
