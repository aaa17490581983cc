/// A bounded memory of ids that are over but may still occur in frames in flight. The oldest are evicted.
///
/// An honest side may end more than fit before the first late frame arrives. One late frame is therefore accepted for each evicted id.
struct RecentIDs<ID: Hashable & Sendable>: Sendable {
    private let capacity: Int
    private var ids: [ID] = []
    /// The number of evicted ids for which no late frame has been accepted yet.
    private var forgotten = 0

    init(capacity: Int) { self.capacity = capacity }

    mutating func insert(_ id: ID) {
        if self.ids.count == self.capacity {
            self.ids.removeFirst()
            self.forgotten += 1
        }
        self.ids.append(id)
    }

    /// Whether the last `capacity` ids include this one.
    func contains(_ id: ID) -> Bool { self.ids.contains(id) }

    /// Whether this may be one of all inserted ids.
    func mayHaveHeld(_ id: ID) -> Bool { self.forgotten > 0 || self.contains(id) }

    /// Removes `id`, or counts it as one of the evicted ids; `false` if it cannot be either.
    mutating func remove(_ id: ID) -> Bool {
        if let index = self.ids.firstIndex(of: id) {
            self.ids.remove(at: index)
            return true
        }
        guard self.forgotten > 0 else { return false }
        self.forgotten -= 1
        return true
    }
}
