/// The open transfers, or streams, of one connection by session, oldest first. They end with their session.
///
/// The protocol bounds their number, so a linear search costs little.
struct SessionMembers<ID: Hashable & Sendable>: Sendable {
    private var entries: [(id: ID, session: SessionID)] = []

    mutating func insert(_ id: ID, of session: SessionID) { self.entries.append((id, session)) }

    mutating func remove(_ id: ID) {
        guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return }
        self.entries.remove(at: index)
    }

    func members(of session: SessionID) -> [ID] { self.entries.filter { $0.session == session }.map(\.id) }
}
