import HeapModule

/// The deadlines of keys, the earliest first. Equal deadlines come in the order in which they were set.
///
/// A key has one deadline at most: setting it again replaces the earlier one. A change takes O(log n).
struct Deadlines<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let instant: MonotonicInstant
        /// The number of entries set before this one.
        let number: UInt64
        let key: Key

        static func < (left: Self, right: Self) -> Bool { (left.instant, left.number) < (right.instant, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private var heap = Heap<Entry>()
    /// The number of the current entry of each key. Other entries in the heap are stale.
    private var current: [Key: UInt64] = [:]
    private var total: UInt64 = 0

    /// The number of keys with a deadline.
    var count: Int { self.current.count }

    /// The keys with a deadline, in the order in which they were set.
    var keys: [Key] { self.current.sorted { $0.value < $1.value }.map(\.key) }  // order does not show: no two have the same number

    /// Whether a key has a deadline.
    func contains(_ key: Key) -> Bool { self.current[key] != nil }

    /// The earliest deadline.
    var next: MonotonicInstant? { self.heap.min?.instant }

    /// Sets the deadline of `key`, and replaces any earlier one.
    mutating func set(_ key: Key, at instant: MonotonicInstant) {
        self.total += 1
        self.current[key] = self.total
        self.heap.insert(Entry(instant: instant, number: self.total, key: key))
        // Stale entries stay in the heap until they would be due. There are seldom more of them than current ones.
        if self.heap.count > 64, self.heap.count / 2 > self.count { self.rebuild() }
        self.dropStale()
    }

    mutating func cancel(_ key: Key) {
        self.current[key] = nil
        self.dropStale()
    }

    /// Removes and returns the next key that is due.
    mutating func popDue(at now: MonotonicInstant) -> Key? {
        guard let entry = self.heap.min, entry.instant <= now else { return nil }
        self.heap.removeMin()
        self.current[entry.key] = nil
        self.dropStale()
        return entry.key
    }

    /// Drops stale entries at the top of the heap, so that reading the first entry changes nothing.
    private mutating func dropStale() {
        while let entry = self.heap.min, self.current[entry.key] != entry.number { self.heap.removeMin() }
    }

    private mutating func rebuild() {
        self.heap = Heap(self.heap.unordered.filter { self.current[$0.key] == $0.number })
    }
}
