import EarshotWire

/// What transfers remember of one peer, for as long as it has a row.
struct PeerTraffic {
    /// How transfers of the session ended whose rows are gone, the latest ones.
    var endedTransfers = EndedTransfers()
}

extension Node {
    /// Has transfers hear of a change of a peer that they depend on.
    func changed(_ peer: PeerID, _ change: PeerChange) {
        switch change {
        case .connected, .unreachable: break
        case .sessionReplaced: self.traffic[peer]?.endedTransfers = EndedTransfers()
        case .attached:
            self.resumeTransfers(of: peer)
        case .ended(let ending, let error): self.end(ending, of: peer, error)
        // Tried again, it would come to the same.
        case .refusedConnection(let explanation):
            self.interruptMovingTransfers(of: peer, .protocolViolation, "the connection was closed for a fault: \(explanation)")
        case .withinReach: if self.hasQueuedUploads(for: peer) { self.handle(.need(peer, .sessionForQueue)) }
        case .forgotten: self.traffic[peer] = nil
        }
    }
}
