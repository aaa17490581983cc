import EarshotWire
import OrderedCollections

/// Incoming transfers whose rows are gone, and whose senders may not have heard how they ended.
///
/// The word `done` may get lost with its connection, and the receiver's person may fetch and delete the file before the sender is back:
/// the offer that comes again must not bring the file a second time.
extension Node {
    /// What removing a row changes in the store.
    func removal(of row: Resource) -> [StoreChange] {
        [.removeResource(row.id)] + (self.end(of: row).map { [.putEndedTransfer($0)] } ?? [])
    }

    /// What is to be remembered of a row that goes; `nil` where its sender knows, or there is no session any more in which it could ask.
    func end(of row: Resource) -> EndedTransfer? {
        guard self.transfers[row.id]?.isEndedByPeer != true, self.core.facts(of: row.peerID)?.session != nil else { return nil }
        return EndedTransfer(row)
    }

    /// Has the row go, and its end remembered as `removal` has it on disk.
    func forget(_ row: Resource) {
        let ended = self.end(of: row)
        self.transfers.removeValue(forKey: row.id)
        if let ended { self.remember(ended) }
    }

    /// Tells the sender of a transfer that ended here once more that it is complete; `false` where the offer is of no such transfer.
    /// - Throws: why it was ended otherwise.
    func answerEnded(_ offer: ResourceOffer, from sender: PeerFacts) throws(EarshotError) -> Bool {
        guard let ended = self.traffic[sender.id]?.endedTransfers[offer.id] else { return false }
        if let error = ended.error { throw EarshotError(error, ended.message) }
        self.connection(to: sender.id)?.send([.resourceDone(offer.id)])
        return true
    }

    /// Of the peer's session, while there is one; the oldest gives way.
    func remember(_ ended: EndedTransfer) {
        guard self.core.facts(of: ended.peerID)?.session != nil else { return }
        self.traffic[ended.peerID, default: PeerTraffic()].endedTransfers.remember(ended)
    }
}
