import EarshotCore
import HeapModule

/// What is to happen, the earliest first; of what happens at the same time, what was planned first.
struct Clock {
    private struct Entry: Comparable {
        let at: Instant
        let number: Int
        let what: Happening

        static func < (left: Self, right: Self) -> Bool { (left.at, left.number) < (right.at, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private var heap = Heap<Entry>()
    private var total = 0
    private(set) var now: Instant = .zero

    /// When the next thing happens.
    var next: Instant? { self.heap.min?.at }

    mutating func plan(_ what: Happening, at instant: Instant) {
        self.total += 1
        self.heap.insert(Entry(at: max(instant, self.now), number: self.total, what: what))
    }

    mutating func plan(_ what: Happening, after delay: Duration) { self.plan(what, at: self.now + delay) }

    /// The next thing, whose time it is now.
    mutating func advance() -> Happening? {
        guard let entry = self.heap.popMin() else { return nil }
        self.now = entry.at
        return entry.what
    }

    /// Until a moment before which nothing is planned.
    mutating func wait(until instant: Instant) { self.now = max(self.now, instant) }

    /// The clocks of a machine: one that nobody sets, and one that people do; and the one by which what is on disk expires, where it is asked for.
    func now(skew: Duration, running: WallTime? = nil) -> Now {
        Now(
            monotonic: MonotonicInstant(nanoseconds: 0) + .seconds(1_000) + self.now, wall: Self.began + self.now + skew, running: running)
    }

    /// What a right wall clock shows when a world begins: 2026-08-01T12:00:00Z.
    static let began = WallTime(milliseconds: 1_785_585_600_000)

    /// When a machine's monotonic clock shows that.
    func instant(of monotonic: MonotonicInstant) -> Instant {
        monotonic - (MonotonicInstant(nanoseconds: 0) + .seconds(1_000))
    }
}
