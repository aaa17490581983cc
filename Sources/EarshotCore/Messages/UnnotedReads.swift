import DequeModule
package import EarshotWire

/// Peers' messages that were read here and whose senders have not noted so. The receipts are sent again on each connection until they do.
///
/// Notes of a peer are looked up here first, so that ids that the peer invented cost nothing more. If there are too many receipts, the
/// oldest are evicted, as on disk.
package struct UnnotedReads: Sendable {
    private struct Entry: Sendable {
        let peer: PeerID
        let id: MessageID
    }

    private let limit: Int
    private var unnoted: [PeerID: Set<MessageID>] = [:]
    /// The receipts, the oldest first. Some may have been noted since.
    private var order: Deque<Entry> = []
    package private(set) var count = 0
    /// The peers whose receipts on disk, from earlier runs, are loaded.
    private var loaded: Set<PeerID> = []

    package init(limit: Int = EarshotLimits.pendingReceipts) {
        self.limit = limit
    }

    package mutating func insert(_ new: some Sequence<MessageID>, of peer: PeerID) {
        for id in new where self.unnoted[peer, default: []].insert(id).inserted {
            self.order.append(Entry(peer: peer, id: id))
            self.count += 1
        }
        while self.count > self.limit, let oldest = self.order.popFirst() { _ = self.take(oldest.id, of: oldest.peer) }
        // Entries that were noted out of order are dropped before they accumulate.
        if self.order.count > 2 * self.limit { self.order.removeAll { self.unnoted[$0.peer]?.contains($0.id) != true } }
    }

    /// Removes receipts that a peer has noted. Returns those that it had not noted before.
    package mutating func noted(_ ids: [MessageID], by peer: PeerID) -> [MessageID] {
        guard self.unnoted[peer] != nil else { return [] }
        return ids.filter { self.take($0, of: peer) }
    }

    /// Returns the receipts for a peer, the oldest first.
    package func all(of peer: PeerID) -> [MessageID] {
        guard let own = self.unnoted[peer] else { return [] }
        var seen: Set<MessageID> = []
        var all: [MessageID] = []
        for entry in self.order where entry.peer == peer && own.contains(entry.id) && seen.insert(entry.id).inserted {
            all.append(entry.id)
        }
        return all
    }

    /// Whether the receipts that earlier runs of the node left on disk are loaded.
    package func isLoaded(_ peer: PeerID) -> Bool { self.loaded.contains(peer) }

    package mutating func load(_ ids: [MessageID], of peer: PeerID) {
        self.loaded.insert(peer)
        self.insert(ids, of: peer)
    }

    /// Removes the receipts for a peer whose session has ended. The next attachment loads the peer's receipts from disk again, because their
    /// removal there may have failed.
    package mutating func removeAll(of peer: PeerID) {
        self.loaded.remove(peer)
        self.count -= self.unnoted.removeValue(forKey: peer)?.count ?? 0
    }

    private mutating func take(_ id: MessageID, of peer: PeerID) -> Bool {
        guard self.unnoted[peer]?.remove(id) != nil else { return false }
        if self.unnoted[peer]?.isEmpty == true { self.unnoted[peer] = nil }
        self.count -= 1
        return true
    }
}
