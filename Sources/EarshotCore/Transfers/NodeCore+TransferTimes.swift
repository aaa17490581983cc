import EarshotWire
import OrderedCollections

/// Progress of transfers, and their time limits.
extension NodeCore {
    // MARK: Progress

    /// Records that bytes have moved. Progress is published at most four times a second.
    mutating func progressed(_ id: ResourceID, to offset: UInt64) {
        let now = self.now.monotonic
        guard self.transfers[id]?.isMoving == true, let due = self.transfers.change(id, { $0.progress(to: offset, at: now) }),
            let transfer = self.transfers[id]
        else { return }
        if transfer.row.isFromDevice { self.deviceBytesCame(id) }
        if due.isDue { self.publish(.resourceProgress(transfer.row)) }
        if due.isRecordDue { self.emit(.keepTransfers([.put(transfer.row, isNew: false)])) }
    }

    /// Records whether bytes move over a data connection. While they do, the mover is asked for its progress periodically.
    mutating func moveElsewhere(_ id: ResourceID, _ moves: Bool) {
        if moves {
            self.set(.progress(id), after: EarshotLimits.progressInterval)
        } else {
            self.deadlines.cancel(.progress(id))
        }
    }

    mutating func askProgress(_ id: ResourceID) {
        guard self.transfers[id]?.isMoving == true else { return }
        self.emit(.transfer(id, .look))
        self.set(.progress(id), after: EarshotLimits.progressInterval)
    }

    // MARK: Time limits

    /// Sets the limit that the transfer waits for; if it does not reach another limit or its end in time, it ends with `timed-out`. `nil`
    /// removes the time limit.
    mutating func limit(_ id: ResourceID, to limit: TransferRecord.Limit?) {
        self.deadlines.cancel(.transfer(id))
        self.transfers.change(id) { $0.waits(for: limit) }
        self.paceTransfers()
        guard let limit, let transfer = self.transfers[id], transfer.isOpen else { return }
        let reading: Duration = .seconds(Int64(clamping: transfer.row.size / EarshotLimits.resourceDoneRate))
        let time: Duration =
            switch limit {
            case .reach: EarshotLimits.resourceReachTime
            case .answer: EarshotLimits.resourceAnswerTime + reading
            case .decision: EarshotLimits.offerTime
            // If all bytes have moved, the sender may have to read the source once more for its digest.
            case .movement(let beyond) where beyond < transfer.row.size: EarshotLimits.resourceStallTime
            case .movement, .comparison, .done: EarshotLimits.resourceDoneTime + reading
            // An overdue transfer ends with the next input, and not during this one.
            case .absence: max(.nanoseconds(1), self.timeLeft(until: transfer.stored?.expiry ?? self.now.running))
            }
        self.set(.transfer(id), after: time)
    }

    /// Returns the time until an expiry that was read from disk. An earlier release may have written it by a wrong wall clock, so the
    /// result is at most the longest time that any record has.
    func timeLeft(until expiry: WallTime) -> Duration { min(expiry - self.now.running, EarshotLimits.outboxAgeLimit) }

    mutating func transferExpired(_ id: ResourceID) {
        guard let transfer = self.transfers[id], let limit = transfer.limit, transfer.isOpen else { return }
        let row = transfer.row
        switch limit {
        case .reach where !transfer.isOffered:
            let words = "\(row.peerName) could not be reached in time; nothing of the file left this machine"
            self.timeOut(row, words, told: "it took too long", as: .notSent)
        case .reach: self.timeOut(row, "\(row.peerName) could not be reached in time", told: "it took too long")
        case .answer where self.isBehindDirectory(row): self.limit(id, to: .answer)
        case .answer: self.timeOut(row, "\(row.peerName) has not answered the offer in time", told: "no answer in time")
        case .decision: self.timeOut(row, "nobody answered the offer in time", told: "nobody answered the offer in time")
        case .comparison: self.timeOut(row, "\(row.peerName) has not said from where to go on", told: "no answer in time")
        case .movement(let beyond):
            guard row.transferred == beyond else { return self.limit(id, to: .movement(beyond: row.transferred)) }
            let stall = "nothing has moved for \(EarshotLimits.resourceStallTime.components.seconds) s"
            let words = beyond < row.size ? stall : "all of it has moved, and was not digested in time"
            self.timeOut(row, words, told: words)
        case .done: self.timeOut(row, "\(row.peerName) has not confirmed it in time; it may have arrived", told: "no confirmation in time")
        case .absence where !transfer.isOffered && row.direction == .outgoing:
            let words = "\(row.peerName) did not come in time; nothing of the file left this machine"
            self.timeOut(row, words, told: "it was away for too long", as: .notSent)
        case .absence: self.timeOut(row, "\(row.peerName) did not come back in time", told: "it was away for too long")
        }
    }

    private mutating func timeOut(_ row: Resource, _ message: String, told: String, as code: EarshotError.Code = .timedOut) {
        self.endTransfer(row.id, code, message, told: Refusal(code: .timedOut, explanation: told))
    }

    /// Whether the peer may leave a directory of this side unanswered for now, because another one is moving.
    private func isBehindDirectory(_ row: Resource) -> Bool {
        guard row.kind == .directory else { return false }
        return self.transfers.ids(of: row.peerID, .outgoingMover).contains { id in
            guard id != row.id, let other = self.transfers[id] else { return false }
            return other.row.kind == .directory && other.row.state == .transferring && other.isMoving
        }
    }
}
