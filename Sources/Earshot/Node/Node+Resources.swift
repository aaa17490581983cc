import EarshotSafety
public import EarshotWire
import FoundationEssentials
import Logging
public import NIOCore
import OrderedCollections

/// Listing resources, and what a person does with them; how they move is in `Node+Uploads` and `Node+Downloads`.
extension Node {
    /// Every transfer, running and finished, oldest first.
    public func resources() -> [Resource] {
        self.transfers.values.map(\.row)
    }

    /// - Throws: `not-found`.
    public func resource(_ id: ResourceID) throws(EarshotError) -> Resource {
        guard let transfer = self.transfers[id] else { throw EarshotError(.notFound, "there is no resource \(id)") }
        return transfer.row
    }

    /// The content of a received resource that is still in the spool.
    /// - Throws: `not-found`; `conflict` where it is not a completed incoming one, or its content was fetched already.
    public func resourceContent(_ id: ResourceID) async throws(EarshotError) -> ResourceContent {
        let row = try self.resource(id)
        guard row.direction == .incoming, row.state == .completed else {
            throw EarshotError(.conflict, "the resource \(id) is not a received one that is complete")
        }
        guard row.inSpool else { throw EarshotError(.conflict, "the content of the resource \(id) was fetched already") }
        return ResourceContent(id: id, name: row.name, size: row.size, spool: self.spool)
    }

    /// Lets go of a received resource's content, and keeps its row: how fetching it ends.
    /// - Throws: `not-found`, `storage`.
    public func dropContent(_ id: ResourceID) async throws(EarshotError) {
        let row = try self.resource(id)
        guard row.direction == .incoming, row.state.isFinal, row.inSpool else { return }
        var dropped = row
        dropped.inSpool = false
        // The row first: content without a row is swept at the next start, a row without content would be a lie.
        try await self.persist([.putResource(dropped)])
        self.transfers[id]?.row.inSpool = false
        try await self.spool.remove(id)
    }

    /// Cancels a running transfer, and gives its row; deletes a finished one with its content, and gives `nil`.
    /// - Throws: `not-found`, `storage`.
    public func removeResource(_ id: ResourceID) async throws(EarshotError) -> Resource? {
        let row = try self.resource(id)
        guard row.state.isFinal else {
            let refusal = Refusal(code: .cancelled, explanation: "cancelled by a person")
            self.records[row.peerID]?.connection?.send([.resourceCancel(ResourceRefuse(id: id, refusal: refusal))])
            self.interruptTransfer(id, .cancelled, "cancelled here")
            return self.transfers[id]?.row ?? row
        }
        try await self.persist([.removeResource(id)])
        self.transfers.removeValue(forKey: id)
        if row.inSpool { try await self.spool.remove(id) }
        return nil
    }

    /// What was kept: finished rows as they are; what was under way when the daemon stopped has failed.
    func loadTransfers(_ rows: [Resource]) async throws(EarshotError) {
        for row in rows {
            var row = row
            if !row.state.isFinal {
                row.state = .failed
                row.error = .notConnected
                row.errorMessage = "the daemon was restarted meanwhile; send it again"
                row.completedAt = Date()
                try await self.store.apply([.putResource(row)])
            }
            self.transfers[row.id] = Transfer(row: row)
        }
        let kept = Set(rows.filter { $0.inSpool && $0.state == .completed }.map(\.id))
        let removed = try await self.spool.sweep(keeping: kept)
        if !removed.isEmpty {
            self.logger.info("removed unfinished content from the spool", metadata: ["files": "\(removed.count)"])
        }
    }

    // MARK: Moving

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

    func interruptTransfer(_ id: ResourceID, _ code: EarshotError.Code, _ message: String) {
        self.finishTransfer(id, code == .cancelled ? .cancelled : .failed, EarshotError(code, message))
    }

    func interruptTransfers(of peer: PeerID, _ code: EarshotError.Code, _ message: String) {
        for transfer in self.transfers.values where transfer.row.peerID == peer && !transfer.row.state.isFinal {
            self.interruptTransfer(transfer.row.id, code, message)
        }
    }

    private func forgetFinishedTransfers() {
        let finished = self.transfers.values.filter { $0.row.state.isFinal && !$0.row.inSpool }.map(\.row.id)
        for id in finished.dropLast(EarshotLimits.finishedTransfers) {
            self.transfers.removeValue(forKey: id)
            self.persist([.removeResource(id)]) { _ in }
        }
    }

    func transferExpired(_ id: ResourceID) {
        guard let row = self.transfers[id]?.row, row.state == .offered else { return }
        let refusal = Refusal(code: .timedOut, explanation: "no answer in time")
        self.records[row.peerID]?.connection?.send([.resourceCancel(ResourceRefuse(id: id, refusal: refusal))])
        self.interruptTransfer(id, .timedOut, "\(row.peerName) has not answered the offer in time")
    }

    // MARK: Frames of either direction

    func receivedRefusal(_ refuse: ResourceRefuse, from peer: PeerID) {
        guard let row = self.transfers[refuse.id]?.row, row.peerID == peer else { return }
        let code = refuse.refusal.code.earshotCode
        let words = refuse.refusal.explanation.isEmpty ? refuse.refusal.code.name : refuse.refusal.explanation
        self.interruptTransfer(refuse.id, code, "\(row.peerName) refused it: \(words)")
    }

    func receivedCancel(_ cancel: ResourceRefuse, from peer: PeerID) {
        guard let row = self.transfers[cancel.id]?.row, row.peerID == peer else { return }
        let code = cancel.refusal.code.earshotCode
        self.interruptTransfer(cancel.id, code, "\(row.peerName) cancelled it")
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

/// The bytes of a received resource, for reading in pieces.
public struct ResourceContent: Sendable {
    private let id: ResourceID
    /// As the sender gave it: untrusted.
    public let name: String
    /// Bytes.
    public let size: UInt64
    private let spool: Spool

    init(id: ResourceID, name: String, size: UInt64, spool: Spool) {
        self.id = id
        self.name = name
        self.size = size
        self.spool = spool
    }

    /// At most `count` bytes from `offset` on; none at the end.
    /// - Throws: `storage` where the spool cannot be read.
    public func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer {
        try await self.spool.read(self.id, at: offset, count: count)
    }
}
