import DequeModule
package import EarshotWire

/// Messages of peers that were read here, and of which their senders have not taken note: told again on each connection until they do.
///
/// What a peer says it has noted is looked up here, so that ids that it makes up cost nothing more. Of too many the oldest give way, as they do
/// on disk.
package struct UnnotedReads: Sendable {
    private struct Entry: Sendable {
        let peer: PeerID
        let id: MessageID
    }

    private let limit: Int
    private var unnoted: [PeerID: Set<MessageID>] = [:]
    /// The oldest first; may name what was noted since.
    private var order: Deque<Entry> = []
    package private(set) var count = 0
    /// Peers whose earlier ones, of which the disk knows, are here.
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
        // What was noted out of order is not kept for long.
        if self.order.count > 2 * self.limit { self.order.removeAll { self.unnoted[$0.peer]?.contains($0.id) != true } }
    }

    /// The peer has taken note of these; gives those of which it had not before.
    package mutating func noted(_ ids: [MessageID], by peer: PeerID) -> [MessageID] {
        guard self.unnoted[peer] != nil else { return [] }
        return ids.filter { self.take($0, of: peer) }
    }

    /// Those of a peer, the oldest first.
    package func all(of peer: PeerID) -> [MessageID] {
        guard let own = self.unnoted[peer] else { return [] }
        var seen: Set<MessageID> = []
        var all: [MessageID] = []
        for entry in self.order where entry.peer == peer && own.contains(entry.id) && seen.insert(entry.id).inserted {
            all.append(entry.id)
        }
        return all
    }

    /// Whether those that an earlier run of the node has left on disk are here.
    package func isLoaded(_ peer: PeerID) -> Bool { self.loaded.contains(peer) }

    package mutating func load(_ ids: [MessageID], of peer: PeerID) {
        self.loaded.insert(peer)
        self.insert(ids, of: peer)
    }

    /// The session with the peer has ended: it is told nothing more. The disk, which may not have taken that, is asked again on the next
    /// attachment.
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
