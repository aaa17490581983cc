import DequeModule
import EarshotWire

/// What senders have taken note of, gathered for one commit. It counts from the moment it comes: until it is on disk, where what was read
/// and is not known to its sender stands, nobody is told of it again. A value without a clock, a disk or a socket.
struct ReceiptNotes: Sendable {
    private var gathering: [PeerID: Set<MessageID>] = [:]
    /// Taken for the disk, one commit after the other.
    private var committing: Deque<[PeerID: Set<MessageID>]> = []

    /// How many gather.
    var count: Int { self.gathering.values.reduce(0) { $0 + $1.count } }

    /// The sender of these has taken note.
    mutating func add(_ ids: [MessageID], by sender: PeerID) {
        self.gathering[sender, default: []].formUnion(ids)
    }

    /// What has gathered, for one commit, which `settled` ends; empty where there is nothing.
    mutating func take() -> [OutboxChange] {
        guard !self.gathering.isEmpty else { return [] }
        let taken = self.gathering
        self.gathering = [:]
        self.committing.append(taken)
        return taken.map { .noted(Array($0.value), by: $0.key) }
    }

    /// The first commit that was taken and has not ended is on disk, or could not be made.
    mutating func settled() {
        _ = self.committing.popFirst()
    }

    /// Whether the sender of this message is known to know that it was read.
    func contains(_ id: MessageID, by sender: PeerID) -> Bool {
        self.gathering[sender]?.contains(id) == true || self.committing.contains { $0[sender]?.contains(id) == true }
    }
}
