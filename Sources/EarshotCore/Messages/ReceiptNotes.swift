import DequeModule
package import EarshotWire
package import OrderedCollections

/// Messages that were read here, and of which their senders have said that they know it: gathered, to be removed from the disk in one
/// commit. The disk lists them as not yet known until then; a note counts from the moment it comes, so that the sender is not told again
/// meanwhile. A value without a clock, a disk or a socket.
package struct ReceiptNotes: Sendable {
    /// Messages by their senders, both in the order in which they came.
    package typealias Notes = OrderedDictionary<PeerID, OrderedSet<MessageID>>

    private var gathering: Notes = [:]
    /// Taken for the disk, one commit after the other.
    private var committing: Deque<Notes> = []

    package init() {}

    /// How many gather.
    package var count: Int { self.gathering.values.reduce(0) { $0 + $1.count } }

    /// The sender of these has taken note.
    package mutating func add(_ ids: [MessageID], by sender: PeerID) {
        self.gathering[sender, default: []].append(contentsOf: ids)
    }

    /// What has gathered, for one commit, which `settled` ends; empty where there is nothing.
    package mutating func take() -> Notes {
        guard !self.gathering.isEmpty else { return [:] }
        let taken = self.gathering
        self.gathering = [:]
        self.committing.append(taken)
        return taken
    }

    /// The first commit that was taken and has not ended is on disk, or could not be made.
    package mutating func settled() {
        _ = self.committing.popFirst()
    }

    /// Whether the sender of this message is known to know that it was read.
    package func contains(_ id: MessageID, by sender: PeerID) -> Bool {
        self.gathering[sender]?.contains(id) == true || self.committing.contains { $0[sender]?.contains(id) == true }
    }
}
