import EarshotWire
import OrderedCollections

/// The end of transfers of both directions, and the record that is kept of it.
extension NodeCore {
    // MARK: Ending

    /// Gives a transfer its final state and tells everyone on this machine. The caller of this method tells the peer.
    mutating func finishTransfer(_ id: ResourceID, _ state: Resource.State, _ error: EarshotError? = nil, isUntold: Bool = false) {
        guard let before = self.transfers[id], before.isOpen else { return }
        let now = self.now.wall
        self.transfers.change(id) { $0.end(state, error, at: now, isUntold: isUntold) }
        guard let row = self.transfers[id]?.row else { return }
        self.deadlines.cancel(.transfer(id))
        self.deadlines.cancel(.progress(id))
        self.closeData(TransferID(id))
        self.emit(.keepTransfers([.put(row, isNew: false)] + (isUntold ? [] : [.removeTransfer(id)])))
        self.publish(.resourceFinished(row))
        if row.isFromDevice { self.deviceUploadEnded(row) }
        if row.direction == .outgoing, row.peerID.kind == .localsend {
            self.transfers.change(id) { $0.moverStopped() }
            self.cargoDone(.resource(id), of: row.peerID)
        }
        if let caller = before.caller {
            let isOver = row.direction == .incoming
            self.answer(caller, isOver ? .failure(error ?? .transferOver) : .resource(row))
        }
        // A transfer that was interrupted before has already been told to stop.
        if before.hasMover, before.link != nil || row.isFromDevice { self.emit(.transfer(id, .stop(isKept: false))) }
        if !before.hasMover || before.row.direction == .outgoing, let stored = before.stored { self.discard(row, stored) }
        self.settleHold(of: id)
        self.forgetFinishedTransfers(endedBy: row.peerID)
        if row.direction == .outgoing { self.startUploads(to: row.peerID) }
        if let share = row.shareID { self.startShare(share) }
    }

    /// Discards what an ended transfer leaves behind. The mover of an incoming one discards its own content.
    private mutating func discard(_ row: Resource, _ stored: StoredTransfer) {
        guard stored.source != .none || stored.isTaken else { return }
        guard stored.source == .spool else { return self.emit(.transfer(row.id, .discard(stored.source))) }
        // The row is written first: a start that found the transfer open would have nothing to send, and would report a failure.
        self.unwritten.ended(row)
    }

    /// Waits until the rows of ended transfers with bodies in the spool are on disk: the store writes the rows before this commit.
    mutating func keepSpooledEnds() {
        let rows = self.unwritten.takeNewEnds()
        if !rows.isEmpty { self.commit(.ended(rows, nil), []) }
    }

    /// Handles the outcome of a commit behind the given ends: all of them are on disk, or the disk refused some, which are retried.
    mutating func endsKept(_ rows: [Resource], _ end: TransferCommit.EndingCall?, _ error: EarshotError?) {
        if error != nil { self.rowsRefused(rows.map(\.id)) }
        for id in self.unwritten.written(rows) { self.emit(.transfer(id, .discard(.spool))) }
        // Answered even if the disk is full: the transfers are over, and their peers may have heard of it.
        let now = rows.map { self.transfers[$0.id]?.row ?? $0 }
        switch end {
        case .transfer(let call)?: if let row = now.first { self.answer(call, .resource(row)) }
        case .share(let call)?: self.answer(call, .resources(now))
        case nil: break
        }
    }

    /// Ends a transfer that is not whole yet. A transfer that is being put in its place continues to its end.
    mutating func interruptTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String, isUntold: Bool = false) {
        guard self.transfers[id]?.reception.isPlacing != true else { return }
        self.finishTransfer(id, code == .cancelled ? .cancelled : .failed, EarshotError(code, message), isUntold: isUntold)
    }

    /// Ends those of a peer's transfers that match `condition`.
    private mutating func interruptTransfers(of peer: PeerID, _ error: EarshotError, where condition: (TransferRecord) -> Bool) {
        for id in self.transfers.ids(of: peer, .open) where self.transfers[id].map(condition) == true {
            self.interruptTransfer(id, error.code, error.message)
        }
    }

    /// Ends a transfer here, and tells the peer now or when it is back.
    mutating func endTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String, told refusal: Refusal) {
        guard let transfer = self.transfers[id], transfer.isOpen, !transfer.reception.isPlacing else { return }
        let isTold = self.tellEnd(of: id, refusal)
        self.interruptTransfer(id, code, message, isUntold: !isTold)
    }

    /// Tells the peer that a transfer has ended here; `false` if the peer must be told later, when it is back.
    mutating func tellEnd(of id: ResourceID, _ refusal: Refusal) -> Bool {
        guard let transfer = self.transfers[id] else { return true }
        let end = ResourceRefuse(id: id, refusal: refusal)
        switch transfer.row.direction {
        case .incoming:
            // While the sender is away it need not be told: it offers the resource again, and is refused then.
            let link = self.records[transfer.peerID]?.connection
            self.send(refusal.code == .cancelled ? .resource(.cancel(end)) : .resource(.refuse(end)), on: link)
            return true
        case .outgoing:
            guard transfer.isOffered else { return true }
            guard let carrier = self.carrier(of: transfer.conversation) else {
                // Without a session, or after leaving the group, the peer keeps nothing of the transfer.
                return !self.mayGoOn(transfer.conversation)
            }
            // The offer goes first so that the receiver knows the id: a cancel refers to an offer of the same connection. If it was already
            // offered on this connection, the repeated offer is not sent.
            self.emit(.send(carrier.link, [.resource(.offer(transfer.offer(in: carrier.session))), .resource(.cancel(end))]))
            return true
        }
    }

    /// Handles a mover that has stopped. Work that arrived meanwhile is next.
    mutating func moverStopped(_ id: ResourceID) {
        self.endList(id)
        self.transfers.change(id) { $0.moverStopped() }
        guard let transfer = self.transfers[id] else {
            // The row was deleted while the mover was still cleaning up.
            return self.emit(.transfer(id, .discard(.none)))
        }
        self.settleHold(of: id)
        self.transferRested(id)
        if transfer.row.direction == .outgoing { self.startUploads(to: transfer.peerID) } else { self.takeOffersAgain(of: transfer.peerID) }
        if let share = transfer.row.shareID { self.startShare(share) }
    }

    /// Handles a transfer on which nothing works any more: its row may be removed, and it may be offered again.
    mutating func transferRested(_ id: ResourceID) {
        guard let transfer = self.transfers[id], transfer.isAtRest else { return }
        let offer = self.transfers.change(id) { $0.takeOffer() } ?? nil
        // The removal goes first, so that its outcome decides the answer to the offer, or the new row is written behind it.
        if let call = self.transfers.change(id, { $0.takeRemover() }) ?? nil { self.take(.remove(id), call) }
        self.forgetFinishedTransfers(endedBy: transfer.peerID)
        if let pending = offer, self.records[transfer.peerID]?.connection == pending.link {
            self.cause = pending.link
            self.resourceOffered(pending.offer, by: transfer.peerID, on: pending.link)
            self.cause = nil
        }
        // The transfer ended while the mover of an interrupted one was keeping its content, and it does not start again.
        if let now = self.transfers[id], now.row.direction == .incoming, !now.isOpen, now.row.state != .completed, !now.hasMover {
            self.emit(.transfer(id, .discard(.none)))
        }
    }

    /// Releases the charge of the sender once the transfer neither waits here nor moves.
    mutating func settleHold(of id: ResourceID) {
        guard let transfer = self.transfers[id], transfer.hold != nil, !transfer.hasMover, !transfer.isWaiting else { return }
        self.release(transfer.hold)
        self.transfers.change(id) { $0.discharged() }
    }

    // MARK: Remembered ends

    /// Returns the record to keep of a row that is removed. It is `nil` if the sender knows of the end, or can no longer ask: the session
    /// is over, or one of the two peers has left the group.
    private func end(of transfer: TransferRecord) -> EndedTransfer? {
        guard !transfer.isEndedByPeer, self.mayGoOn(transfer.conversation) else { return nil }
        return EndedTransfer(transfer.row, at: self.now.running)
    }

    /// Returns the store operations that remove a row.
    func removal(of transfer: TransferRecord) -> [StoreOperation] {
        [.removeResource(transfer.row.id)] + (self.end(of: transfer).map { [.putEndedTransfer($0)] } ?? [])
    }

    /// Removes the row from memory and remembers its end, as `removal` does on disk.
    mutating func forget(_ transfer: TransferRecord) {
        let ended = self.end(of: transfer)
        self.release(transfer.hold)
        self.transfers.remove(transfer.row.id)
        if let ended { self.transfers.remember(ended) }
    }

    /// Removes the oldest rows without content, so that their number is bounded. The peer with the most rows loses them first.
    mutating func forgetFinishedTransfers(endedBy peer: PeerID) {
        while let id = self.transfers.surplus(endedBy: peer), let transfer = self.transfers[id] {
            self.emit(.keepTransfers([.remove(id, self.end(of: transfer))]))
            self.forget(transfer)
        }
    }

    // MARK: The peer's frames

    mutating func resourceRefused(_ refuse: ResourceRefuse, by peer: PeerID) {
        guard let row = self.transfers[refuse.id]?.row, row.peerID == peer else { return }
        let code = refuse.refusal.code.earshotCode
        let words = refuse.refusal.explanation.isEmpty ? refuse.refusal.code.name : refuse.refusal.explanation
        let message = code == .declined ? "\(row.peerName) declined it" : "\(row.peerName) did not take it: \(words)"
        self.interruptTransfer(refuse.id, code, message)
    }

    mutating func resourceCancelled(_ cancel: ResourceRefuse, by peer: PeerID) {
        guard let transfer = self.transfers[cancel.id], transfer.peerID == peer else { return }
        if transfer.row.direction == .incoming, transfer.isOpen {
            self.transfers.change(cancel.id) { $0.cancelledByPeer() }
            self.offeredInVain(peer)
        }
        let code = cancel.refusal.code.earshotCode
        let words = cancel.refusal.explanation.isEmpty || code == .cancelled ? "" : ": \(cancel.refusal.explanation)"
        self.interruptTransfer(cancel.id, code, "\(transfer.row.peerName) cancelled it\(words)")
    }

    // MARK: Dependencies

    /// Reacts to a change of a peer that transfers depend on.
    mutating func transfersHear(_ change: PeerChange, of peer: PeerID) {
        switch change {
        case .connected, .unreachable: break
        // In a group the peer may still ask.
        case .sessionReplaced: if self.records[peer]?.groups.isEmpty != false { self.transfers.forgetEnded(of: peer) }
        case .forgotten: self.transfers.forgetEnded(of: peer)
        case .attached: self.resumeTransfers(of: peer)
        case .ended(let ending, let error):
            // Transfers of groups depend on the connection alone. They end when the peer's membership ends.
            let isOfGroupsToo = ending == .connection
            self.end(.transfers, of: peer, by: ending, error) { ($0.row.group == nil || isOfGroupsToo) && $0.stored?.isQueued != true }
            self.end(.queuedTransfers, of: peer, by: ending, error) {
                ($0.row.group == nil || isOfGroupsToo) && $0.stored?.isQueued == true
            }
        // A retry would fail in the same way. Transfers that wait did not cause the fault.
        case .refusedConnection(let explanation):
            let error = EarshotError(.protocolViolation, "the connection was closed for a fault: \(explanation)")
            self.interruptTransfers(of: peer, error) { $0.link != nil && !$0.reception.isActive }
        case .withinReach:
            // Queued transfers wait even if reaching the peer fails.
            if self.transfers.count(of: peer, .queued) > 0 { self.needed(.sessionForQueue, of: peer) }
        }
    }

    /// Ends the transfers in a group that this machine no longer shares with the peer.
    mutating func endTransfers(in conversation: Conversation, _ error: EarshotError, told refusal: Refusal? = nil) {
        for id in self.transfers.ids(of: conversation.peer, .open) {
            guard let refusal, let transfer = self.transfers[id], transfer.conversation == conversation, transfer.row.direction == .incoming
            else { continue }
            self.endTransfer(id, error.code, error.message, told: refusal)
        }
        self.interruptTransfers(of: conversation.peer, error) { $0.conversation == conversation }
        // The peer can no longer ask about any transfer.
        if !self.isTalking(with: conversation.peer) { self.transfers.forgetEnded(of: conversation.peer) }
    }

    private mutating func end(
        _ dependent: Ending.Dependent, of peer: PeerID, by ending: Ending, _ error: EarshotError, where condition: (TransferRecord) -> Bool
    ) {
        switch ending.fate(of: dependent) {
        case .stays: break
        // A transfer that waited for an invitation waits for the next one.
        case .waits: if ending == .connection { self.pauseTransfers(of: peer, where: condition) }
        case .ends: self.interruptTransfers(of: peer, error, where: condition)
        }
    }
}

extension EarshotError {
    static var transferOver: Self { Self(.cancelled, "the transfer has ended") }
}
