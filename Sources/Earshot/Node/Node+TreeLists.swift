import EarshotWire
import OrderedCollections

/// The lists of entries of directories that come in: one at a time of each peer, so that their memory is bounded.
///
/// A peer offers as many directories as it likes, and none is refused for this: its offer is answered when its turn comes. A sender waits
/// with the answer to a directory for as long as another one of its own moves.
extension Node {
    /// Waits until the list of entries of a directory may come.
    /// - Throws: `cancelled` where the transfer ends or is interrupted meanwhile.
    func awaitTreeList(of row: Resource, _ signals: AsyncStream<Transfer.Signal>) async throws(EarshotError) {
        guard row.kind == .directory, !self.treeLists.begin(row.id, of: row.peerID) else { return }
        var turns = signals.makeAsyncIterator()
        while let signal = await turns.next(isolation: self) {
            guard case .turn = signal else { continue }
            guard self.isMoving(row.id) else { break }
            return
        }
        throw EarshotError(.cancelled, "the transfer has ended")
    }

    /// What hears that a directory's list is here, on whatever thread that is: a short one may stay in memory beside the next.
    func treeListing(_ id: ResourceID) -> @Sendable (Int) -> Void {
        { [weak self] bytes in
            guard bytes <= EarshotLimits.shortTreeList else { return }
            self?.job.yield { [weak self] in await self?.endTreeList(id) }
        }
    }

    /// The next directory of that peer may send its list.
    func endTreeList(_ id: ResourceID) {
        guard let next = self.treeLists.end(id) else { return }
        // One that has ended meanwhile says so when its job returns.
        self.transfers[next]?.signals?.yield(.turn)
    }

    /// Whether the peer may leave a directory of ours without an answer for now: another one moves.
    func isBehindDirectory(_ row: Resource) -> Bool {
        row.kind == .directory
            && self.transfers.values.contains {
                $0.row.id != row.id && $0.row.peerID == row.peerID && $0.row.direction == .outgoing && $0.row.kind == .directory
                    && $0.row.state == .transferring && $0.signals != nil
            }
    }
}
