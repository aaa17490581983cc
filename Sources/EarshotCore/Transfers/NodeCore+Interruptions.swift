import EarshotWire
import OrderedCollections

/// Transfers over lost connections and restarts: they pause on both sides, and resume from the receiver's content when both are back.
///
/// The sender offers a paused transfer again under its id. If the receiver holds the beginning, it says so. The sender compares that with
/// its source, and both resume from there. Even if a side is killed, only the content on the receiver's disk counts. A sender tells the
/// returning peer about transfers that cannot resume (a body that was streamed) or that ended while the peer was away. A receiver answers
/// the repeated offer.
extension NodeCore {
    // MARK: Pausing

    /// Pauses those of a peer's transfers that match `condition`, because the connection to it is lost.
    mutating func pauseTransfers(of peer: PeerID, where condition: (TransferRecord) -> Bool) {
        for id in self.transfers.ids(of: peer, .open) where self.transfers[id].map(condition) == true { self.pauseTransfer(id) }
    }

    /// Stops all transfers with the node. Resumable ones continue after the next start.
    mutating func stopTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id] else { continue }
            if transfer.row.direction == .outgoing, transfer.row.peerID.kind == .localsend {
                // Nothing resumes at a device. A queued resource of which it has no byte is offered again after the next start.
                let isWaiting = transfer.stored?.isQueued == true && transfer.row.state == .offered
                if !isWaiting { self.interruptTransfer(id, .cancelled, "this side was stopped") }
            } else if transfer.stored?.isResumable == true, !transfer.row.isFromDevice {
                self.pauseTransfer(id)
            } else {
                self.interruptTransfer(id, .cancelled, "this side was stopped", isUntold: transfer.isOffered)
            }
        }
        self.interruptShipments("this side was stopped")
        // A removal that has not begun is refused.
        for transfer in self.transfers.all where transfer.remover != nil {
            if let call = self.transfers.change(transfer.row.id, { $0.takeRemover() }) ?? nil { self.answer(call, .failure(.stopping)) }
        }
    }

    private mutating func pauseTransfer(_ id: ResourceID) {
        guard let before = self.transfers[id], let stored = before.stored, !before.reception.isActive else { return }
        self.transfers.change(id) { _ = $0.takeOffer() }
        guard stored.isResumable else {
            // A transfer without a connection has sent nothing, and may still begin. If it waited for its turn, it now waits for its peer.
            guard before.link != nil else {
                if before.limit == nil { self.limit(id, to: .reach) }
                return
            }
            let reason = "the connection was lost; send it again, with --queue so that it resumes automatically"
            return self.interruptTransfer(id, .unavailable, reason, isUntold: before.isOffered)
        }
        let latest = self.now.running + EarshotLimits.resourceResumeTime
        // An offer that awaits a user's decision keeps waiting. A transfer that is already interrupted keeps its deadline.
        guard before.link != nil else {
            guard before.row.direction == .outgoing, before.limit == nil else { return }
            // The transfer waited for its turn, which has no deadline.
            self.transfers.change(id) { $0.isAbsent(until: latest) }
            self.limit(id, to: .absence)
            if let transfer = self.transfers[id], transfer.stored != stored { self.keepTransfer(transfer) }
            return
        }
        self.transfers.change(id) { $0.interrupt(until: latest) }
        self.deadlines.cancel(.progress(id))
        self.limit(id, to: .absence)
        guard let transfer = self.transfers[id] else { return }
        // A download was accepted, and will resume. The caller of an upload waits for its end.
        if before.row.direction == .incoming { self.answerTaken(id) }
        self.keepTransfer(transfer)
        if transfer.row.state == .paused { self.publish(.resourceProgress(transfer.row)) }
        self.closeData(TransferID(id))
        if before.hasMover { self.emit(.transfer(id, .stop(isKept: true))) }
    }

    // MARK: Going on

    /// Offers waiting transfers (again) and reports those that ended meanwhile. Runs once both sides have named the session, or a group.
    mutating func resumeTransfers(of peer: PeerID) {
        for id in self.transfers.ids(of: peer, .untold) {
            guard let transfer = self.transfers[id] else { continue }
            let row = transfer.row
            let told = Refusal(toPeer: EarshotError(row.error ?? .cancelled, row.errorMessage ?? ""))
            let isForgotten = transfer.stored.map { $0.expiry < self.now.running } ?? true
            guard isForgotten || self.tellEnd(of: id, told) else { continue }
            self.transfers.change(id) { $0.peerTold() }
            self.emit(.keepTransfers([.removeTransfer(id)]))
        }
        self.startUploads(to: peer)
    }

    // MARK: Restarts

    /// Loads the transfers of an earlier run: finished rows unchanged, unfinished ones as interrupted if they can resume.
    mutating func loadTransfers(_ loaded: [LoadedTransfer], _ ended: [EndedTransfer]) {
        for end in ended where self.isTalking(with: end.peerID) { self.transfers.remember(end) }
        for entry in loaded {
            var record = TransferRecord(loaded: entry)
            if record.isOpen { self.takeUp(&record, held: entry.held) }
            if record.correct(place: entry.place) { self.emit(.keepTransfers([.put(record.row, isNew: false)])) }
            self.transfers.put(record)
        }
    }

    private mutating func takeUp(_ transfer: inout TransferRecord, held: UInt64?) {
        if transfer.peerID.kind == .localsend { return self.takeUpDevice(&transfer) }
        let peer = self.records[transfer.peerID]
        let mayGoOn = self.mayGoOn(transfer.conversation)
        let isAwaited = transfer.row.group == nil && transfer.stored?.isQueued == true && peer?.trust == .trusted
        if transfer.stored?.isResumable == true, mayGoOn || isAwaited {
            return transfer.takeUp(held: held, until: self.now.running + EarshotLimits.resourceResumeTime)
        }
        // Content that a body has already left at the receiver is useless.
        let isUntold = transfer.stored?.source == .body && mayGoOn
        let error = EarshotError(mayGoOn ? .unavailable : .notConnected, "this side was restarted meanwhile; send it again")
        transfer.end(.failed, error, at: self.now.wall, isUntold: isUntold)
        self.emit(.keepTransfers([.put(transfer.row, isNew: false)] + (isUntold ? [] : [.removeTransfer(transfer.row.id)])))
    }

    /// Takes up a transfer with a device: only a queued one that has not begun goes on.
    private mutating func takeUpDevice(_ transfer: inout TransferRecord) {
        guard transfer.row.direction == .outgoing, transfer.stored?.isQueued == true else {
            return self.failLoaded(&transfer, EarshotError(.notConnected, "this side was restarted meanwhile; send it again"))
        }
        guard transfer.row.state != .offered else { return }
        let words = "this side was restarted while it was sent; \(transfer.row.peerName) may or may not have it"
        self.failLoaded(&transfer, EarshotError(.unconfirmed, words))
    }

    private mutating func failLoaded(_ transfer: inout TransferRecord, _ error: EarshotError) {
        transfer.end(.failed, error, at: self.now.wall, isUntold: false)
        self.emit(.keepTransfers([.put(transfer.row, isNew: false), .removeTransfer(transfer.row.id)]))
    }

    /// Sets the limits of loaded transfers, and publishes content that was not put in its place. Runs once the node works.
    mutating func beginTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id], transfer.limit == nil, !transfer.hasMover else { continue }
            let isUndecided = transfer.row.direction == .incoming && !transfer.isTaken
            let isNew = transfer.row.state == .offered && transfer.stored?.isQueued != true
            self.limit(id, to: isUndecided ? .decision : isNew ? .reach : .absence)
            if transfer.peerID.kind == .localsend { self.ship(.resource(id), to: transfer.peerID) }
        }
        // Until then they can be neither fetched nor deleted.
        let left = self.settings.putsInPlace ? self.transfers.all.map(\.row).filter(\.isLeft) : []
        for row in left { self.transfers.change(row.id) { $0.stepReception { $0.left(row) } } }
        self.emit(.placeLeft(left))
    }
}
