import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Transfers over lost connections and restarts: they pause on both sides, and go on from what the receiver has when both are back.
///
/// The sender offers a paused one again under its id. A receiver that holds the beginning says so, the sender compares that with its
/// source, and both go on from there: see `Node+Uploads` and `Node+Downloads`. Whatever moment a side was killed in, what counts is what lies
/// on the receiver's disk. Of what cannot go on (a body that passed by) and of what was ended while the other side was away, the sender
/// tells it when it is back; a receiver answers the offer that comes again.
extension Node {
    // MARK: Pausing

    /// The connection to a peer is gone: those of its transfers that `condition` takes wait for the next.
    func pauseTransfers(of peer: PeerID, where condition: (Transfer) -> Bool) {
        for id in self.transfers.ids(of: peer, .open) where self.transfers[id].map(condition) == true { self.pauseTransfer(id) }
    }

    /// Ends those that move, or are about to; what waits is not at fault.
    func interruptMovingTransfers(of peer: PeerID, _ code: EarshotError.Code, _ message: String) {
        self.interruptTransfers(of: peer, code, message) { $0.signals != nil && !$0.isSettling }
    }

    /// This node stops: what can go on does so after the next start.
    func stopTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id] else { continue }
            if transfer.stored?.isResumable == true {
                self.pauseTransfer(id)
            } else {
                self.interruptTransfer(id, .cancelled, "the daemon stopped", isUntold: transfer.isOffered)
            }
        }
    }

    private func pauseTransfer(_ id: ResourceID) {
        guard var transfer = self.transfers[id], var stored = transfer.stored, !transfer.isSettling else { return }
        transfer.pendingOffer = nil
        self.transfers[id] = transfer
        guard stored.isResumable else {
            // Not before anything was sent: there it may still begin.
            guard transfer.signals != nil else { return }
            let reason = "the connection was lost; send it again, with --queue to have it go on by itself"
            self.interruptTransfer(id, .unavailable, reason, isUntold: transfer.isOffered)
            return
        }
        // An offer that waits for a person here goes on waiting, and one that is interrupted already has its time.
        guard transfer.signals != nil else {
            if transfer.row.direction == .outgoing, transfer.limit == nil { self.limit(id, to: .absence) }
            return
        }
        transfer.signals?.finish()
        transfer.signals = nil
        transfer.meter = RateMeter()
        transfer.pace.pause()
        transfer.lastProgress = nil
        transfer.unrecordedSince = nil
        transfer.row.bytesPerSecond = 0
        if transfer.row.state == .transferring || transfer.isTaken { transfer.row.state = .paused }
        let latest = self.now.addingTimeInterval(EarshotLimits.resourceResumeTime / .seconds(1))
        stored.expiresAt = stored.isQueued ? max(stored.expiresAt, latest) : latest
        transfer.stored = stored
        self.transfers[id] = transfer
        self.limit(id, to: .absence)
        self.keepRows { rows in
            rows.put(transfer.row)
            rows.put(stored)
        }
        if transfer.row.state == .paused { self.publish(.resourceProgress(transfer.row)) }
    }

    /// A job has returned; what came meanwhile is next.
    func jobEnded(_ id: ResourceID) {
        self.endTreeList(id)
        self.transfers[id]?.hasJob = false
        self.transfers[id]?.isSettling = false
        guard let transfer = self.transfers[id] else { return }
        if let pending = transfer.pendingOffer {
            self.transfers[id]?.pendingOffer = nil
            if self.connection(to: transfer.row.peerID) === pending.connection {
                self.received(pending.offer, from: transfer.row.peerID)
            }
        }
        if transfer.row.direction == .outgoing { self.startUploads(to: transfer.row.peerID) }
    }

    // MARK: Going on

    /// Both sides have named the session: what waits is offered (again), and what ended meanwhile is told.
    func resumeTransfers(of peer: PeerID) {
        for id in self.transfers.ids(of: peer, .untold) {
            guard let transfer = self.transfers[id] else { continue }
            let row = transfer.row
            let refusal = Refusal(EarshotError(row.error ?? .cancelled, row.errorMessage ?? ""))
            let isForgotten = transfer.stored.map { $0.expiresAt < self.now } ?? true
            guard isForgotten || self.tellEnd(of: row.id, refusal) else { continue }
            self.transfers[row.id]?.stored = nil
            self.keepRows { $0.removeTransfer(row.id) }
        }
        self.startUploads(to: peer)
    }

    /// Tells the other side that a transfer has ended here; `false` where that has to wait until it is back.
    func tellEnd(of id: ResourceID, _ refusal: Refusal) -> Bool {
        guard let transfer = self.transfers[id], let facts = self.core.facts(of: transfer.row.peerID) else { return true }
        let end = ResourceRefuse(id: id, refusal: refusal)
        switch transfer.row.direction {
        case .incoming:
            // While it is away it need not be told: it offers again, and is refused then.
            self.connection(to: facts.id)?.send([refusal.code == .cancelled ? .resourceCancel(end) : .resourceRefuse(end)])
            return true
        case .outgoing:
            guard transfer.isOffered else { return true }
            guard let (connection, session) = self.attachment(to: facts.id) else {
                // Without a session, nothing of it is left there.
                return facts.session == nil
            }
            // On a connection on which it was offered, the second offer is dropped; on another one it says what the cancel is about.
            connection.send([.resourceOffer(transfer.offer(in: session)), .resourceCancel(end)])
            return true
        }
    }

    // MARK: Restarts

    /// What was kept: finished rows as they are, unfinished ones as interrupted where they can go on.
    func loadTransfers(_ rows: [Resource], _ stored: [StoredTransfer]) async throws(EarshotError) {
        let storedByID = Dictionary(stored.map { ($0.id, $0) }) { one, _ in one }
        var partial: [ResourceID: Spool.Left] = [:]
        for row in rows where !row.state.isFinal && row.direction == .incoming && storedByID[row.id]?.isTaken == true {
            partial[row.id] = Spool.Left(size: row.size, peer: row.peerID)
        }
        let lengths = await self.spool.adopt(partial)
        for row in rows {
            var transfer = Transfer(row: row, stored: storedByID[row.id])
            // Whether it was is not known any more.
            transfer.isOffered = row.direction == .outgoing
            if !row.state.isFinal { try await self.loadUnfinished(&transfer, held: lengths[row.id]) }
            if row.kind == .directory, row.inSpool, let path = await self.spool.placeOfTree(row.id) {
                // Killed between putting it there and saying so.
                transfer.row.path = path
                transfer.row.inSpool = false
                transfer.row.error = nil
                transfer.row.errorMessage = nil
                try await self.store.apply([.putResource(transfer.row)])
            }
            self.transfers[row.id] = transfer
        }
        let loaded = self.transfers.values
        let kept = Set(loaded.filter { $0.row.inSpool && $0.row.state == .completed }.map(\.row.id))
        let outgoing = Set(loaded.filter { !$0.row.state.isFinal && $0.stored?.source == .spool }.map(\.row.id))
        let removed = try await self.spool.sweep(keeping: kept, outgoing: outgoing)
        if !removed.isEmpty {
            self.logger.info("removed unfinished content from the spool", metadata: ["files": "\(removed.count)"])
        }
    }

    private func loadUnfinished(_ transfer: inout Transfer, held: UInt64?) async throws(EarshotError) {
        let record = self.core.facts(of: transfer.row.peerID)
        let isWanted = record?.session != nil || (transfer.stored?.isQueued == true && record?.trust == .trusted)
        guard var stored = transfer.stored, stored.isResumable, isWanted else {
            transfer.row.state = .failed
            transfer.row.error = .notConnected
            transfer.row.errorMessage = "the daemon was restarted meanwhile; send it again"
            transfer.row.completedAt = self.now
            // What a body has brought there before is of no use any more.
            if transfer.stored?.source != .body || record?.session == nil { transfer.stored = nil }
            try await self.store.apply(
                [.putResource(transfer.row)] + (transfer.stored == nil ? [.removeTransfer(transfer.row.id)] : []))
            return
        }
        if transfer.row.state == .transferring {
            // Killed on the way: its time of absence begins now.
            let latest = self.now.addingTimeInterval(EarshotLimits.resourceResumeTime / .seconds(1))
            stored.expiresAt = max(stored.expiresAt, latest)
            transfer.stored = stored
        }
        if transfer.row.state == .transferring || stored.isTaken { transfer.row.state = .paused }
        if transfer.row.direction == .incoming { transfer.row.transferred = held ?? 0 }
    }

    /// What a run that was killed was putting into the directory of received files goes, and is put there anew; that directory may be slow,
    /// so beside the rest.
    func settleLeftParts() {
        let destination = self.destination
        for transfer in self.transfers.values where destination != nil && transfer.row.isLeft {
            self.transfers[transfer.row.id]?.isPublishing = true
        }
        self.spawn { [weak self, spool, logger] in
            let removed = await spool.publisher.removeLeftParts()
            if removed > 0 {
                logger.info("removed what an earlier run had not put in place", metadata: ["parts": "\(removed)"])
            }
            if let destination { await self?.publishLeft(to: destination) }
        }
    }

    /// The limits of what was loaded, once the node runs.
    func limitLoadedTransfers() {
        for id in self.transfers.ids(.open) {
            guard let transfer = self.transfers[id], transfer.limit == nil, !transfer.hasJob else { continue }
            let isUndecided = transfer.row.direction == .incoming && !transfer.isTaken
            let isNew = transfer.row.state == .offered && transfer.stored?.isQueued != true
            self.limit(transfer.row.id, to: isUndecided ? .decision : isNew ? .reach : .absence)
        }
    }
}

extension Transfer {
    /// What its sender says of it.
    func offer(in session: SessionID) -> ResourceOffer {
        let kind: ResourceOffer.Kind =
            switch self.row.kind {
            case .file: .file
            case .directory: .directory
            }
        return ResourceOffer(session: session, id: self.row.id, kind: kind, size: self.row.size, name: self.row.name)
    }
}
