import EarshotCore
import HeapModule

/// The pending events, earliest first. Simultaneous events keep the order in which they were planned.
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

    /// The time of the next event.
    var next: Instant? { self.heap.min?.at }

    mutating func plan(_ what: Happening, at instant: Instant) {
        self.total += 1
        self.heap.insert(Entry(at: max(instant, self.now), number: self.total, what: what))
    }

    mutating func plan(_ what: Happening, after delay: Duration) { self.plan(what, at: self.now + delay) }

    /// Takes the next event and advances to its time.
    mutating func advance() -> Happening? {
        guard let entry = self.heap.popMin() else { return nil }
        self.now = entry.at
        return entry.what
    }

    /// Advances to a time before which no event is planned.
    mutating func wait(until instant: Instant) { self.now = max(self.now, instant) }

    /// Returns the clocks of a machine: the monotonic clock, the wall clock with its skew, and, if given, the running clock by which data
    /// on disk expires.
    func now(skew: Duration, running: WallTime? = nil) -> Now {
        Now(
            monotonic: MonotonicInstant(nanoseconds: 0) + .seconds(1_000) + self.now, wall: Self.began + self.now + skew, running: running)
    }

    /// The correct wall clock at the beginning of a world: 2026-08-01T12:00:00Z.
    static let began = WallTime(milliseconds: 1_785_585_600_000)

    /// Returns the simulated time of a machine's monotonic time.
    func instant(of monotonic: MonotonicInstant) -> Instant {
        monotonic - (MonotonicInstant(nanoseconds: 0) + .seconds(1_000))
    }
}
