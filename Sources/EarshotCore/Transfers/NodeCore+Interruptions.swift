import EarshotWire
import OrderedCollections

/// Transfers over lost connections and restarts: they pause on both sides, and go on from what the receiver has when both are back.
///
/// The sender offers a paused one again under its id. A receiver that holds the beginning says so, the sender compares that with its
/// source, and both go on from there. Even if a side is killed on the way, what counts is what lies on the receiver's disk. Of what
/// cannot go on (a body that passed by) and of what was ended while the other side was away, the sender tells it when it is back; a
/// receiver answers the offer that comes again.
extension NodeCore {
    // MARK: Pausing

    /// The connection to a peer is gone: those of its transfers that `condition` takes wait for the next.
    mutating func pauseTransfers(of peer: PeerID, where condition: (TransferRecord) -> Bool) {
        for id in self.transfers.ids(of: peer, .open) where self.transfers[id].map(condition) == true { self.pauseTransfer(id) }
    }

    /// This machine's peer stops: what can go on does so after the next start.
    mutating func stopTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id] else { continue }
            if transfer.stored?.isResumable == true {
                self.pauseTransfer(id)
            } else {
                self.interruptTransfer(id, .cancelled, "this side was stopped", isUntold: transfer.isOffered)
            }
        }
        // A removal that has not begun does not begin any more.
        for transfer in self.transfers.all where transfer.remover != nil {
            if let call = self.transfers.change(transfer.row.id, { $0.remover.take() }) ?? nil { self.answer(call, .failure(.stopping)) }
        }
    }

    private mutating func pauseTransfer(_ id: ResourceID) {
        guard let before = self.transfers[id], let stored = before.stored, !before.isSettling else { return }
        _ = self.transfers.change(id) { $0.pendingOffer = nil }
        guard stored.isResumable else {
            // Not before anything was sent: there it may still begin. One that waited for its turn waits for its peer now.
            guard before.link != nil else {
                if before.limit == nil { self.limit(id, to: .reach) }
                return
            }
            let reason = "the connection was lost; send it again, with --queue to have it go on by itself"
            return self.interruptTransfer(id, .unavailable, reason, isUntold: before.isOffered)
        }
        let latest = self.now.running + EarshotLimits.resourceResumeTime
        // An offer that waits for a person here goes on waiting, and one that is interrupted already has its time.
        guard before.link != nil else {
            guard before.row.direction == .outgoing, before.limit == nil else { return }
            // It has waited for its turn, for as long as that took.
            _ = self.transfers.change(id) { $0.isAbsent(until: latest) }
            self.limit(id, to: .absence)
            if let transfer = self.transfers[id], transfer.stored != stored { self.keepTransfer(transfer) }
            return
        }
        _ = self.transfers.change(id) { $0.interrupt(until: latest) }
        self.deadlines.cancel(.progress(id))
        self.limit(id, to: .absence)
        guard let transfer = self.transfers[id] else { return }
        // It was accepted, and goes on.
        self.answerTaken(id)
        self.keepTransfer(transfer)
        if transfer.row.state == .paused { self.publish(.resourceProgress(transfer.row)) }
        if before.hasMover { self.emit(.transfer(id, .stop(isKept: true))) }
    }

    // MARK: Going on

    /// Both sides have named the session, or a group: what waits is offered (again), and what ended meanwhile is told.
    mutating func resumeTransfers(of peer: PeerID) {
        for id in self.transfers.ids(of: peer, .untold) {
            guard let transfer = self.transfers[id] else { continue }
            let row = transfer.row
            let told = Refusal(toPeer: EarshotError(row.error ?? .cancelled, row.errorMessage ?? ""))
            let isForgotten = transfer.stored.map { $0.expiry < self.now.running } ?? true
            guard isForgotten || self.tellEnd(of: id, told) else { continue }
            _ = self.transfers.change(id) { $0.stored = nil }
            self.emit(.keepTransfers([.removeTransfer(id)]))
        }
        self.startUploads(to: peer)
    }

    // MARK: Restarts

    /// What an earlier run has kept: finished rows as they are, unfinished ones as interrupted where they can go on.
    mutating func loadTransfers(_ loaded: [LoadedTransfer], _ ended: [EndedTransfer]) {
        for end in ended where self.isTalking(with: end.peerID) { self.transfers.remember(end) }
        for entry in loaded {
            var record = TransferRecord(row: entry.row, stored: entry.stored)
            // Whether the peer knows of it was not kept: it may.
            record.isOffered = entry.row.direction == .outgoing
            if record.isOpen { self.takeUp(&record, held: entry.held) }
            if let place = entry.place {
                // The earlier run was killed after it had put the content in place, and before that was committed.
                record.row.path = place
                record.row.inSpool = false
                record.row.error = nil
                record.row.errorMessage = nil
                self.emit(.keepTransfers([.put(record.row, isNew: false)]))
            }
            if record.row.inSpool, record.row.direction == .incoming, !record.isOpen, record.row.state != .completed {
                // The disk could not take back that it was received, and had its end written later: what is there is swept.
                record.row.inSpool = false
                self.emit(.keepTransfers([.put(record.row, isNew: false)]))
            }
            self.transfers.put(record)
        }
    }

    private mutating func takeUp(_ transfer: inout TransferRecord, held: UInt64?) {
        let peer = self.records[transfer.peerID]
        let mayGoOn = self.mayGoOn(transfer.conversation)
        let isAwaited = transfer.row.group == nil && transfer.stored?.isQueued == true && peer?.trust == .trusted
        guard let stored = transfer.stored, stored.isResumable, mayGoOn || isAwaited else {
            transfer.row.state = .failed
            transfer.row.error = .notConnected
            transfer.row.errorMessage = "this side was restarted meanwhile; send it again"
            transfer.row.completed = self.now.wall
            // What a body has brought there before is of no use any more.
            if transfer.stored?.source != .body || !mayGoOn { transfer.stored = nil }
            let isOver = transfer.stored == nil
            return self.emit(.keepTransfers([.put(transfer.row, isNew: false)] + (isOver ? [.removeTransfer(transfer.row.id)] : [])))
        }
        if transfer.row.state == .transferring {
            // Killed on the way: its time of absence begins now.
            transfer.stored?.expiry = max(stored.expiry, self.now.running + EarshotLimits.resourceResumeTime)
        }
        if transfer.row.direction == .incoming {
            // Nothing moves that was not accepted: the disk took this row, and not what was said of that before.
            if transfer.row.state != .offered { transfer.stored?.isTaken = true }
            transfer.row.transferred = held ?? 0
        }
        if transfer.row.state == .transferring || stored.isTaken { transfer.row.state = .paused }
    }

    /// The limits of what was loaded, and what was not put in place, once this machine's peer works.
    mutating func beginTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id], transfer.limit == nil, !transfer.hasMover else { continue }
            let isUndecided = transfer.row.direction == .incoming && !transfer.isTaken
            let isNew = transfer.row.state == .offered && transfer.stored?.isQueued != true
            self.limit(id, to: isUndecided ? .decision : isNew ? .reach : .absence)
        }
        // Meanwhile they can be neither fetched nor deleted.
        let left = self.settings.putsInPlace ? self.transfers.all.map(\.row).filter(\.isLeft) : []
        for row in left {
            _ = self.transfers.change(row.id) { transfer in
                transfer.placing = row
                transfer.placing?.error = nil
                transfer.placing?.errorMessage = nil
            }
        }
        self.emit(.placeLeft(left))
    }
}
