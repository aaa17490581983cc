import EarshotWire

extension NodeCore {
    mutating func dataPathChanged(_ transfer: TransferID, _ event: DataPathEvent) {
        let before = self.dataPaths.waiting(transfer)
        self.withEffects { core, effects in core.dataPaths.handle(event, of: transfer, using: &core.random, into: &effects) }
        let after = self.dataPaths.waiting(transfer)
        guard before != after else { return }
        if let before { self.deadlines.cancel(.dataPath(transfer, attempt: before)) }
        if let after { self.set(.dataPath(transfer, attempt: after), after: EarshotLimits.dataDialTime) }
    }

    /// Ends the data connections with a peer when the control connection is lost, or when the session has ended. Transfers in a group
    /// continue after the session's end.
    mutating func endDataPaths(of peer: PeerID, by ending: Ending) {
        let transfers = self.dataPaths.transfers(of: peer).filter { transfer in
            ending == .connection || self.transfers[ResourceID(high: transfer.high, low: transfer.low)]?.row.group == nil
        }
        for transfer in transfers {
            if let attempt = self.dataPaths.waiting(transfer) { self.deadlines.cancel(.dataPath(transfer, attempt: attempt)) }
        }
        self.withEffects { core, effects in core.dataPaths.close(transfers, of: peer, into: &effects) }
    }
}
