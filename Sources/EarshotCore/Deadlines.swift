import HeapModule

/// What comes due when, the earliest first; of what is due at the same moment, what was set first.
///
/// Each key has one moment at most: set again, the earlier one no longer counts. Takes O(log n) a change.
struct Deadlines<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let instant: MonotonicInstant
        /// How many were set before.
        let number: UInt64
        let key: Key

        static func < (left: Self, right: Self) -> Bool { (left.instant, left.number) < (right.instant, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private var heap = Heap<Entry>()
    /// Which entry of the heap counts for a key.
    private var current: [Key: UInt64] = [:]
    private var total: UInt64 = 0

    /// How many keys have a moment.
    var count: Int { self.current.count }

    /// Those that have a moment, in the order in which they were set.
    var keys: [Key] { self.current.sorted { $0.value < $1.value }.map(\.key) }  // order does not show: no two have the same number

    /// Whether it has a moment.
    func contains(_ key: Key) -> Bool { self.current[key] != nil }

    /// When the next key is due.
    var next: MonotonicInstant? { self.heap.min?.instant }

    /// Has `key` come due then, and no more at any earlier moment that it had.
    mutating func set(_ key: Key, at instant: MonotonicInstant) {
        self.total += 1
        self.current[key] = self.total
        self.heap.insert(Entry(instant: instant, number: self.total, key: key))
        // What was cancelled stays in the heap until it would be due: seldom more than what counts.
        if self.heap.count > 64, self.heap.count / 2 > self.count { self.rebuild() }
        self.dropStale()
    }

    mutating func cancel(_ key: Key) {
        self.current[key] = nil
        self.dropStale()
    }

    /// The next key that is due, which has no moment any more.
    mutating func popDue(at now: MonotonicInstant) -> Key? {
        guard let entry = self.heap.min, entry.instant <= now else { return nil }
        self.heap.removeMin()
        self.current[entry.key] = nil
        self.dropStale()
        return entry.key
    }

    /// The heap's first entry counts, so that looking at it changes nothing.
    private mutating func dropStale() {
        while let entry = self.heap.min, self.current[entry.key] != entry.number { self.heap.removeMin() }
    }

    private mutating func rebuild() {
        self.heap = Heap(self.heap.unordered.filter { self.current[$0.key] == $0.number })
    }
}
