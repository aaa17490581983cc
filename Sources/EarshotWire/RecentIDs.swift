/// A bounded memory of identifiers, the oldest forgotten first: what is over but may still be spoken of by frames under way.
///
/// An honest side may end more than fit before the first late frame comes, so that one frame may come for each that was forgotten.
struct RecentIDs<ID: Hashable & Sendable>: Sendable {
    private let capacity: Int
    private var ids: [ID] = []
    /// How many were forgotten for want of room, and not spoken of since as far as can be told.
    private var forgotten = 0

    init(capacity: Int) { self.capacity = capacity }

    mutating func insert(_ id: ID) {
        if self.ids.count == self.capacity {
            self.ids.removeFirst()
            self.forgotten += 1
        }
        self.ids.append(id)
    }

    /// Whether the last `capacity` hold it.
    func contains(_ id: ID) -> Bool { self.ids.contains(id) }

    /// Whether it may be one of all that were inserted.
    func mayHaveHeld(_ id: ID) -> Bool { self.forgotten > 0 || self.contains(id) }

    /// Forgets `id`, or one that was forgotten before and may be it; `false` where it cannot have been one of them.
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
