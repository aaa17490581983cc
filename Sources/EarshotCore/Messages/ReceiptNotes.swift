import DequeModule
package import EarshotWire
package import OrderedCollections

/// The messages that were read here and whose senders know so: gathered, to be removed from the disk in one commit. Until then the disk
/// lists them as not yet known. A note takes effect on arrival, so that the sender is not told again meanwhile. A value without a clock, a
/// disk or a socket.
package struct ReceiptNotes: Sendable {
    /// Messages by their senders, both in the order of arrival.
    package typealias Notes = OrderedDictionary<PeerID, OrderedSet<MessageID>>

    private var gathering: Notes = [:]
    /// The notes that are being written, one commit after the other.
    private var committing: Deque<Notes> = []

    package init() {}

    /// The number of gathered notes.
    package var count: Int { self.gathering.values.reduce(0) { $0 + $1.count } }

    /// Adds notes of a sender.
    package mutating func add(_ ids: [MessageID], by sender: PeerID) {
        self.gathering[sender, default: []].append(contentsOf: ids)
    }

    /// Returns the gathered notes for one commit; empty if there are none. `settled` ends the commit.
    package mutating func take() -> Notes {
        guard !self.gathering.isEmpty else { return [:] }
        let taken = self.gathering
        self.gathering = [:]
        self.committing.append(taken)
        return taken
    }

    /// Ends the oldest commit, which was written or has failed.
    package mutating func settled() {
        _ = self.committing.popFirst()
    }

    /// Whether the sender of a message has noted that it was read.
    package func contains(_ id: MessageID, by sender: PeerID) -> Bool {
        self.gathering[sender]?.contains(id) == true || self.committing.contains { $0[sender]?.contains(id) == true }
    }
}
