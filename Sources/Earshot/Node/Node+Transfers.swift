import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// What transfers of both directions have in common: progress, ends, limits of time, and the frames that end them.
extension Node {
    /// Whether a transfer is not over; it may be interrupted.
    func isOpen(_ id: ResourceID) -> Bool {
        self.transfers[id].map { !$0.row.state.isFinal } ?? false
    }

    /// Whether a transfer is neither over nor interrupted: what its job asks after each await.
    func isMoving(_ id: ResourceID) -> Bool {
        self.isOpen(id) && self.transfers[id]?.signals != nil
    }

    /// Bytes have moved; told at most four times a second.
    func progressed(_ id: ResourceID, to offset: UInt64, at now: MonotonicInstant? = nil) {
        guard var transfer = self.transfers[id], self.isMoving(id) else { return }
        let now = now ?? self.transport.timers.now
        let moved = offset - min(transfer.row.transferred, offset)
        // From where an interrupted one goes on, nothing has moved yet.
        if transfer.lastProgress != nil {
            transfer.meter.add(moved, at: now)
            transfer.pace.add(moved, at: now)
        }
        transfer.row.transferred = offset
        transfer.row.bytesPerSecond = transfer.meter.bytesPerSecond
        transfer.row.secondsLeft = transfer.pace.secondsLeft(for: transfer.row.size - min(offset, transfer.row.size))
        transfer.row.state = .transferring
        let isDue = transfer.lastProgress.map { now - $0 >= EarshotLimits.progressInterval } ?? true
        if isDue { transfer.lastProgress = now }
        // What is killed on the way was under way, and the next start is to say so; what is small is done before that is worth a write.
        let isLarge = transfer.row.size - min(offset, transfer.row.size) >= EarshotLimits.dataThreshold
        let isRecordDue = transfer.unrecordedSince.map { isLarge || now - $0 >= EarshotLimits.resourceRecordTime } ?? false
        if isRecordDue { transfer.unrecordedSince = nil }
        self.transfers[id] = transfer
        if isDue { self.publish(.resourceProgress(transfer.row)) }
        if isRecordDue { self.keepRows { $0.put(transfer.row) } }
    }

    /// Its bytes move over a data connection from now on: how far it is, is looked at now and then, until `moves` is called with `nil`.
    func moves(_ id: ResourceID, _ moved: (@Sendable () -> UInt64)?) {
        if moved == nil, let last = self.transfers[id]?.moved { self.progressed(id, to: last()) }
        self.transfers[id]?.progressTimer?.cancel()
        self.transfers[id]?.progressTimer = nil
        self.transfers[id]?.moved = moved
        if moved != nil { self.scheduleProgress(id) }
    }

    func showProgress(_ id: ResourceID) {
        guard let moved = self.transfers[id]?.moved, self.isMoving(id) else { return }
        self.progressed(id, to: moved())
        self.scheduleProgress(id)
    }

    private func scheduleProgress(_ id: ResourceID) {
        let timer = self.schedule(.progress(id), after: EarshotLimits.progressInterval)
        self.transfers[id]?.progressTimer = timer
    }

    /// Gives a transfer its final state and tells everyone here; the caller tells the peer.
    func finishTransfer(_ id: ResourceID, _ state: Resource.State, _ error: EarshotError? = nil, isUntold: Bool = false) {
        guard var transfer = self.transfers[id], !transfer.row.state.isFinal else { return }
        transfer.row.state = state
        if state == .completed { transfer.row.transferred = transfer.row.size }
        transfer.row.error = error?.code
        transfer.row.errorMessage = error?.message
        transfer.row.bytesPerSecond = 0
        transfer.row.secondsLeft = nil
        transfer.row.completedAt = self.now
        transfer.expiry?.cancel()
        transfer.signals?.finish()
        transfer.progressTimer?.cancel()
        transfer.moved = nil
        let (ended, stored) = (transfer.ended, transfer.stored)
        transfer.expiry = nil
        transfer.signals = nil
        transfer.pendingOffer = nil
        transfer.content = nil
        transfer.ended = nil
        if !isUntold { transfer.stored = nil }
        self.transfers[id] = transfer
        self.closeData(TransferID(id))
        self.keepRows { rows in
            rows.put(transfer.row)
            if !isUntold { rows.removeTransfer(id) }
        }
        self.publish(.resourceFinished(transfer.row))
        ended?.settle(transfer.row)
        self.dropContent(of: transfer.row, stored)
        self.forgetFinishedTransfers(endedBy: transfer.row.peerID)
        if transfer.row.direction == .outgoing { self.startUploads(to: transfer.row.peerID) }
    }

    /// What an ended transfer leaves in the spool and is not needed; a job that runs drops its own.
    private func dropContent(of row: Resource, _ stored: StoredTransfer?) {
        guard let stored else { return }
        let hasJob = self.transfers[row.id]?.hasJob ?? false
        switch stored.source {
        case .spool: self.spawn { [spool] in await spool.dropOutgoing(row.id) }
        case .none where stored.isTaken && !hasJob: self.spawn { [spool] in await spool.abandon(row.id) }
        case .path, .body, .none: break
        }
    }

    /// Ends a transfer that is not whole yet; one that is being put in place goes on to its end.
    func interruptTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String, isUntold: Bool = false) {
        guard self.transfers[id]?.isPublishing != true else { return }
        self.finishTransfer(id, code == .cancelled ? .cancelled : .failed, EarshotError(code, message), isUntold: isUntold)
    }

    /// Ends those of a peer's transfers that `condition` takes.
    func interruptTransfers(of peer: PeerID, _ code: EarshotError.Code, _ message: String, where condition: (Transfer) -> Bool) {
        for id in self.transfers.ids(of: peer, .open) where self.transfers[id].map(condition) == true {
            self.interruptTransfer(id, code, message)
        }
    }

    /// Ends a transfer here, and has the other side told: now, or when it is back.
    func endTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String, told refusal: Refusal) {
        guard let transfer = self.transfers[id], !transfer.row.state.isFinal, !transfer.isPublishing else { return }
        let isTold = self.tellEnd(of: id, refusal)
        self.interruptTransfer(id, code, message, isUntold: !isTold)
    }

    /// The oldest rows without content go, so that their number is bounded: first those of a peer of which there are the most.
    func forgetFinishedTransfers(endedBy peer: PeerID) {
        while let id = self.transfers.surplus(beyond: EarshotLimits.finishedTransfers, endedBy: peer), let row = self.transfers[id]?.row {
            self.keepRows { $0.remove(id, self.end(of: row)) }
            self.forget(row)
        }
    }

    // MARK: Limits of time

    /// Has the transfer end with `timed-out` unless it gets to another limit, or to its end, in time; `nil` lets it take what it takes.
    func limit(_ id: ResourceID, to limit: Transfer.Limit?) {
        self.transfers[id]?.expiry?.cancel()
        self.transfers[id]?.expiry = nil
        self.transfers[id]?.limit = limit
        guard let limit, let transfer = self.transfers[id], !transfer.row.state.isFinal else { return }
        let reading: Duration = .seconds(Int64(clamping: transfer.row.size / EarshotLimits.resourceDoneRate))
        let time: Duration =
            switch limit {
            case .reach: EarshotLimits.resourceReachTime
            case .answer: EarshotLimits.resourceAnswerTime + reading
            case .decision: EarshotLimits.offerTime
            case .movement: EarshotLimits.resourceStallTime
            case .comparison, .done: EarshotLimits.resourceDoneTime + reading
            case .absence: max(.zero, .seconds(transfer.stored?.expiresAt.timeIntervalSince(self.now) ?? 0))
            }
        let timer = self.schedule(.transfer(id, limit), after: time)
        self.transfers[id]?.expiry = timer
    }

    func transferExpired(_ id: ResourceID, _ limit: Transfer.Limit) {
        guard let transfer = self.transfers[id], transfer.limit == limit, !transfer.row.state.isFinal else { return }
        let row = transfer.row
        switch limit {
        case .reach: self.timeOut(row, "\(row.peerName) could not be reached in time", told: "it took too long")
        case .answer where self.isBehindDirectory(row): self.limit(id, to: .answer)
        case .answer: self.timeOut(row, "\(row.peerName) has not answered the offer in time", told: "no answer in time")
        case .decision: self.timeOut(row, "nobody answered the offer in time", told: "nobody answered the offer in time")
        case .comparison: self.timeOut(row, "\(row.peerName) has not said from where to go on", told: "no answer in time")
        case .movement(let beyond):
            guard row.transferred == beyond else { return self.limit(id, to: .movement(beyond: row.transferred)) }
            let words = "nothing has moved for \(EarshotLimits.resourceStallTime.components.seconds) s"
            self.timeOut(row, words, told: words)
        case .done: self.timeOut(row, "\(row.peerName) has not confirmed it in time; it may have arrived", told: "no confirmation in time")
        case .absence: self.timeOut(row, "\(row.peerName) did not come back in time", told: "it was away for too long")
        }
    }

    private func timeOut(_ row: Resource, _ message: String, told: String) {
        self.endTransfer(row.id, .timedOut, message, told: Refusal(code: .timedOut, explanation: told))
    }

    // MARK: Frames of either direction

    func receivedRefusal(_ refuse: ResourceRefuse, from peer: PeerID) {
        guard let row = self.transfers[refuse.id]?.row, row.peerID == peer else { return }
        let code = refuse.refusal.code.earshotCode
        let words = refuse.refusal.explanation.isEmpty ? refuse.refusal.code.name : refuse.refusal.explanation
        let message = code == .declined ? "\(row.peerName) declined it" : "\(row.peerName) did not take it: \(words)"
        self.interruptTransfer(refuse.id, code, message)
    }

    func receivedCancel(_ cancel: ResourceRefuse, from peer: PeerID) {
        guard let transfer = self.transfers[cancel.id], transfer.row.peerID == peer else { return }
        let row = transfer.row
        if row.direction == .incoming, !row.state.isFinal {
            self.transfers[cancel.id]?.isEndedByPeer = true
            self.handle(Input.vainOffer(peer))
        }
        let code = cancel.refusal.code.earshotCode
        let words = cancel.refusal.explanation.isEmpty || code == .cancelled ? "" : ": \(cancel.refusal.explanation)"
        self.interruptTransfer(cancel.id, code, "\(row.peerName) cancelled it\(words)")
    }

    /// Hands a frame to its transfer's job; `false` where there is none (any more).
    @discardableResult
    func signal(_ id: ResourceID, from peer: PeerID, _ direction: Direction, _ signal: Transfer.Signal) -> Bool {
        guard let transfer = self.transfers[id], transfer.row.peerID == peer, transfer.row.direction == direction,
            case .enqueued? = transfer.signals?.yield(signal)
        else { return false }
        return true
    }
}
