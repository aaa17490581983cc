/// A bounded memory of identifiers, the oldest forgotten first: what is over but may still be spoken of by frames under way.
struct RecentIDs<ID: Hashable & Sendable>: Sendable {
    private let capacity: Int
    private var ids: [ID] = []

    init(capacity: Int) { self.capacity = capacity }

    mutating func insert(_ id: ID) {
        if self.ids.count == self.capacity {
            self.ids.removeFirst()
        }
        self.ids.append(id)
    }

    /// Forgets `id`; `false` where it was not known.
    mutating func remove(_ id: ID) -> Bool {
        guard let index = self.ids.firstIndex(of: id) else { return false }
        self.ids.remove(at: index)
        return true
    }

    func contains(_ id: ID) -> Bool { self.ids.contains(id) }
}
