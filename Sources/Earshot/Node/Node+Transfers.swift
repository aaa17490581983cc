import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// What transfers of both directions have in common: progress, ends, limits of time, and the frames that end them.
extension Node {
    func isRunning(_ id: ResourceID) -> Bool {
        self.transfers[id].map { !$0.row.state.isFinal } ?? false
    }

    /// Bytes have moved; told at most four times a second.
    func progressed(_ id: ResourceID, to offset: UInt64) {
        guard var transfer = self.transfers[id], !transfer.row.state.isFinal else { return }
        let now = ContinuousClock.now
        transfer.meter.add(offset - min(transfer.row.transferred, offset), at: now)
        transfer.row.transferred = offset
        transfer.row.bytesPerSecond = transfer.meter.bytesPerSecond
        transfer.row.state = .transferring
        let isDue = transfer.lastProgress.map { now - $0 >= EarshotLimits.progressInterval } ?? true
        if isDue { transfer.lastProgress = now }
        self.transfers[id] = transfer
        if isDue { self.tell(.resourceProgress(transfer.row)) }
    }

    /// Gives a transfer its final state and tells everyone here; the caller tells the peer.
    func finishTransfer(_ id: ResourceID, _ state: Resource.State, _ error: EarshotError? = nil) {
        guard var transfer = self.transfers[id], !transfer.row.state.isFinal else { return }
        transfer.row.state = state
        transfer.row.error = error?.code
        transfer.row.errorMessage = error?.message
        transfer.row.bytesPerSecond = 0
        transfer.row.completedAt = Date()
        transfer.expiry?.cancel()
        transfer.signals?.finish()
        let waiters = transfer.waiters
        transfer.expiry = nil
        transfer.signals = nil
        transfer.waiters = []
        self.transfers[id] = transfer
        self.persist([.putResource(transfer.row)]) { _ in }
        self.tell(.resourceFinished(transfer.row))
        for waiter in waiters { waiter.resume(returning: transfer.row) }
        self.forgetFinishedTransfers()
    }

    /// Ends a transfer that is not whole yet; one that is being put in place goes on to its end.
    func interruptTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String) {
        guard self.transfers[id]?.isPublishing != true else { return }
        self.finishTransfer(id, code == .cancelled ? .cancelled : .failed, EarshotError(code, message))
    }

    func interruptTransfers(of peer: PeerID, _ code: EarshotError.Code, _ message: String) {
        for transfer in self.transfers.values where transfer.row.peerID == peer && !transfer.row.state.isFinal {
            self.interruptTransfer(transfer.row.id, code, message)
        }
    }

    /// The oldest rows without content go, so that their number is bounded.
    func forgetFinishedTransfers() {
        let finished = self.transfers.values.filter { $0.row.state.isFinal && !$0.row.inSpool }.map(\.row.id)
        for id in finished.dropLast(EarshotLimits.finishedTransfers) {
            self.transfers.removeValue(forKey: id)
            self.persist([.removeResource(id)]) { _ in }
        }
    }

    // MARK: Limits of time

    /// Has the transfer end with `timed-out` unless it gets to another limit, or to its end, in time; `nil` lets it take what it takes.
    func limit(_ id: ResourceID, to limit: Transfer.Limit?) {
        self.transfers[id]?.expiry?.cancel()
        self.transfers[id]?.expiry = nil
        self.transfers[id]?.limit = limit
        guard let limit, let row = self.transfers[id]?.row, !row.state.isFinal else { return }
        let time: Duration =
            switch limit {
            case .reach: EarshotLimits.resourceReachTime
            case .answer: EarshotLimits.resourceAnswerTime
            case .decision: EarshotLimits.offerTime
            case .movement: EarshotLimits.resourceStallTime
            case .done: EarshotLimits.resourceDoneTime + .seconds(Int64(clamping: row.size / EarshotLimits.resourceDoneRate))
            }
        let timer = self.schedule(.transfer(id, limit), after: time)
        self.transfers[id]?.expiry = timer
    }

    func transferExpired(_ id: ResourceID, _ limit: Transfer.Limit) {
        guard let transfer = self.transfers[id], transfer.limit == limit, !transfer.row.state.isFinal else { return }
        let row = transfer.row
        switch limit {
        case .reach: self.timeOut(row, "\(row.peerName) could not be reached in time", told: "it took too long")
        case .answer: self.timeOut(row, "\(row.peerName) has not answered the offer in time", told: "no answer in time")
        case .decision: self.timeOut(row, "nobody answered the offer in time", told: "nobody answered the offer in time")
        case .movement(let beyond):
            guard row.transferred == beyond else { return self.limit(id, to: .movement(beyond: row.transferred)) }
            let words = "nothing has moved for \(EarshotLimits.resourceStallTime.components.seconds) s"
            self.timeOut(row, words, told: words)
        case .done: self.timeOut(row, "\(row.peerName) has not confirmed it in time; it may have arrived", told: "no confirmation in time")
        }
    }

    private func timeOut(_ row: Resource, _ message: String, told: String) {
        let frame = ResourceRefuse(id: row.id, refusal: Refusal(code: .timedOut, explanation: told))
        self.records[row.peerID]?.connection?.send([row.direction == .incoming ? .resourceRefuse(frame) : .resourceCancel(frame)])
        self.interruptTransfer(row.id, .timedOut, message)
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
        guard let row = self.transfers[cancel.id]?.row, row.peerID == peer else { return }
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

    func resumeTransfers(of peer: PeerID) {
        for transfer in self.transfers.values where transfer.row.peerID == peer && transfer.row.state == .offered {
            transfer.signals?.yield(.attached)
        }
    }
}
