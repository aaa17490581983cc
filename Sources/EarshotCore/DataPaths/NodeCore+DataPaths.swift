import EarshotWire
import OrderedCollections

extension NodeCore {
    /// Opens a data connection for a transfer, and closes an earlier one of that transfer. Both sides call this function when they have
    /// agreed to use a data connection, in the same input in which the agreement is sent or received: the peer's ticket may be the next
    /// frame. Both transfers then use the two ends of one connection, or both are told that there is none.
    mutating func openData(_ user: DataPaths.User, with peer: PeerID) {
        guard let link = self.records[peer]?.link.current, self.isTalking(with: peer) else {
            self.closeData(user.transfer)
            return self.dataOpened(user, false)
        }
        self.changeDataPath(of: user.transfer) { core, effects in
            core.dataPaths.open(
                user, with: peer, over: link.id, isInitiator: link.facts.isInitiator, using: &core.random, into: &effects)
        }
    }

    /// Closes a transfer's data connection, and ends every attempt to establish one.
    mutating func closeData(_ transfer: TransferID) {
        self.changeDataPath(of: transfer) { core, effects in core.dataPaths.close(transfer, into: &effects) }
    }

    mutating func dataPathChanged(_ transfer: TransferID, _ event: DataPathEvent) {
        var outcome: (user: DataPaths.User, stands: Bool)?
        self.changeDataPath(of: transfer) { core, effects in
            outcome = core.dataPaths.handle(event, of: transfer, using: &core.random, into: &effects)
        }
        if let outcome { self.dataOpened(outcome.user, outcome.stands) }
    }

    private mutating func changeDataPath(of transfer: TransferID, _ body: (inout Self, inout [Effect]) -> Void) {
        let before = self.dataPaths.waiting(transfer)
        self.withEffects(body)
        let after = self.dataPaths.waiting(transfer)
        guard before != after else { return }
        if let before { self.deadlines.cancel(.dataPath(transfer, attempt: before)) }
        if let after { self.set(.dataPath(transfer, attempt: after), after: EarshotLimits.dataDialTime) }
    }

    private mutating func dataOpened(_ user: DataPaths.User, _ stands: Bool) {
        switch user {
        case .resource(let id): self.transferDataOpened(id, stands)
        case .stream(let id): self.streamDataOpened(id, stands)
        }
    }

    /// Ends the data connections with a peer when the control connection is lost, or when the session has ended. Transfers in a group
    /// continue after the session's end.
    mutating func endDataPaths(of peer: PeerID, by ending: Ending) {
        let ended = self.dataPaths.users(of: peer).filter { user in
            guard case .resource(let id) = user else { return true }
            return ending == .connection || self.transfers[id]?.row.group == nil
        }
        for user in ended {
            guard let attempt = self.dataPaths.waiting(user.transfer) else { continue }
            self.deadlines.cancel(.dataPath(user.transfer, attempt: attempt))
        }
        self.withEffects { core, effects in core.dataPaths.close(ended.map(\.transfer), of: peer, into: &effects) }
    }
}
