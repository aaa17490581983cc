/// Which open transfers, or streams, of one connection belong to which session, oldest first: what ends when the session does.
///
/// As few as the protocol lets be open at a time, so that looking through them costs little.
struct SessionMembers<ID: Hashable & Sendable>: Sendable {
    private var entries: [(id: ID, session: SessionID)] = []

    mutating func insert(_ id: ID, of session: SessionID) { self.entries.append((id, session)) }

    mutating func remove(_ id: ID) {
        guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return }
        self.entries.remove(at: index)
    }

    func members(of session: SessionID) -> [ID] { self.entries.filter { $0.session == session }.map(\.id) }
}
