import EarshotWire
import OrderedCollections

/// Receiving resources: content goes into the spool under an id of this machine, is verified, and is then published. The name is only
/// metadata.
extension NodeCore {
    /// Returns the part of the quota that a peer's transfers may use.
    func share(of peer: PeerID) -> QuotaShare { QuotaShare(of: peer, isTrusted: self.trust(in: peer) == .trusted) }

    // MARK: Beginning

    /// Accepts an offer: reserves space, or looks for content kept from an earlier connection and waits for the sender to continue. The
    /// caller is answered once there is space.
    mutating func beginDownload(_ id: ResourceID, on link: LinkID, _ call: CallID? = nil) {
        guard let before = self.transfers[id], before.isOpen, !before.hasMover else { return }
        let hold = before.hold ?? self.hold(EarshotLimits.waitCharge)
        let now = self.now.monotonic
        self.transfers.change(id) { $0.begin(on: link, at: now, for: call, charged: hold) }
        self.limit(id, to: nil)
        let hasTurn = before.row.kind == .file || self.transfers.beginList(id, of: before.peerID)
        // A directory may wait for another one of the same peer. The user's call is answered without waiting for that.
        if !hasTurn { self.answerTaken(id) }
        self.stepDownload(id) { download, _, _ in download.take(hasTurn: hasTurn) }
    }

    /// Answers the caller that accepted the transfer with its current row.
    mutating func answerTaken(_ id: ResourceID) {
        guard let call = self.transfers.change(id, { $0.answered() }) ?? nil, let row = self.transfers[id]?.row else { return }
        self.answer(call, .resource(row))
    }

    /// Ends a directory's turn: its list of entries takes little memory from now on, or its mover has stopped. The peer's next directory
    /// may begin.
    mutating func endList(_ id: ResourceID) {
        guard let next = self.transfers.endList(id) else { return }
        self.stepDownload(next) { download, _, _ in download.turn() }
    }

    // MARK: Moving

    /// Handles the sender's answer that names the offset from which it continues.
    mutating func resourceGoesOn(_ from: ResourceFrom, by peer: PeerID) {
        guard let download = self.transfers[from.id], download.peerID == peer, download.row.direction == .incoming else { return }
        guard from.offset <= download.row.size else {
            let words = "it goes on behind its end; send it again"
            return self.downloadFailed(from.id, TransferFailure(EarshotError(.protocolViolation, words)))
        }
        if download.limit == .comparison { self.limit(from.id, to: nil) }
        self.stepDownload(from.id) { $0.goes(on: from.offset, size: $1, window: $2) }
    }

    /// Handles the sender's report that it has sent everything.
    mutating func resourceEnded(_ end: ResourceEnd, by peer: PeerID) {
        guard let download = self.transfers[end.id], download.peerID == peer, download.row.direction == .incoming else { return }
        self.stepDownload(end.id) { download, _, _ in download.ended(ResourceDigest(end.algorithm, end.digest)) }
    }

    mutating func resourceWritten(_ id: ResourceID, to offset: UInt64) {
        self.progressed(id, to: offset)
        self.stepDownload(id) { $0.written(to: offset, size: $1, window: $2) }
    }

    mutating func downloadDataEnded(_ id: ResourceID, at offset: UInt64) {
        self.progressed(id, to: offset)
        self.moveElsewhere(id, false)
        self.stepDownload(id) { $0.dataEnded(at: offset, size: $1, window: $2) }
    }

    /// Advances a download by one event. The event receives the size and the window, which is how far the sender may be ahead.
    mutating func stepDownload(
        _ id: ResourceID, _ event: (inout DownloadStateMachine, UInt64, UInt64) -> DownloadStateMachine.Action
    ) {
        guard let download = self.transfers[id], download.isMoving, let link = download.link else { return }
        let row = download.row
        let isShared = self.transfers.count(of: row.peerID, .openIncoming) > 1
        let rate = self.receiveRate(of: download)
        let window = Self.window(isShared ? EarshotLimits.sharedResourceWindow : EarshotLimits.resourceWindow, at: rate)
        let action = self.transfers.change(id) { transfer in
            transfer.stepDownload { download in
                download.takes(data: Self.takesData(at: rate))
                return event(&download, row.size, window)
            }
        }
        switch action {
        case .wait?, nil: break
        case .resume?: self.emit(.transfer(id, .resume(row, self.share(of: row.peerID), download.attributes)))
        case .tell(let held)?:
            self.send(.resource(.have(ResourceHave(id: id, offset: held.count, digest: held.digest))), on: link)
            self.limit(id, to: .comparison)
        case .begin?: self.emit(.transfer(id, .begin(row, self.share(of: row.peerID))))
        case .accept(let offset, let limit)?: self.accept(download, from: offset, upTo: limit, on: link)
        case .widen(let offset, let limit)?:
            self.send(.resource(.accept(ResourceAccept(id: id, offset: offset, limit: limit))), on: link)
        case .receiveData?:
            self.moveElsewhere(id, true)
            self.emit(.transfer(id, .receiveData))
        case .settle(let digest)?:
            // From here on only this machine's disk takes time, whatever happens to the connection.
            self.transfers.change(id) { $0.stepReception { $0.settle() } }
            self.limit(id, to: nil)
            self.emit(.transfer(id, .settle(digest)))
        }
    }

    private mutating func accept(_ download: TransferRecord, from offset: UInt64, upTo limit: UInt64, on link: LinkID) {
        let (id, row) = (download.row.id, download.row)
        if download.limit == nil {
            self.progressed(id, to: offset)
            self.limit(id, to: .movement(beyond: offset))
        }
        let accept = ResourceAccept(id: id, offset: offset, limit: limit)
        self.send(.resource(.accept(accept)), on: link)
        if accept.isForDataConnection(size: row.size) {
            self.openData(.resource(id), with: row.peerID)
        } else {
            self.closeData(TransferID(id))
        }
        self.answerTaken(id)
    }

    /// Ends a download that cannot continue: its sender is told why, and its content is discarded.
    mutating func downloadFailed(_ id: ResourceID, _ failure: TransferFailure) {
        guard let download = self.transfers[id], download.isMoving else { return }
        self.offeredInVain(download.peerID)
        self.endTransfer(id, failure.error.code, failure.error.message, told: failure.told)
    }

    // MARK: Publishing

    /// Handles content that is verified and on disk. The sender is told after the row is on disk too, and the content is in its place.
    mutating func downloadSettled(_ id: ResourceID, _ digest: String) {
        guard let download = self.transfers[id],
            let action = self.transfers.change(id, { $0.stepReception { $0.settled(isOpen: download.isOpen) } })
        else { return self.removeContent(of: id) }
        switch action {
        case .removeContent: self.removeContent(of: id)
        case .keep:
            let row = download.received(digest, at: self.now.wall)
            var kept = row
            if self.settings.putsInPlace {
                // If the process is killed before the content is in place, the next start reads this error.
                kept.error = .unavailable
                kept.errorMessage = "it was not put in place before the stop; its content is kept"
            }
            self.commit(.received(row), [.putResource(kept), .removeTransfer(id)])
        }
    }

    mutating func downloadKept(_ row: Resource, _ error: EarshotError?) {
        let id = row.id
        guard let transfer = self.transfers[id] else { return self.removeContent(of: id) }
        // If the node is stopping, the next start continues from here.
        guard !self.isStopping || (error == nil && !transfer.isOpen) else { return }
        // The sender learns nothing about where this machine keeps its store.
        let failure = error.map { TransferFailure($0, told: Refusal($0.code, "its disk does not take it")) }
        let (isOpen, hasPlace) = (transfer.isOpen, self.settings.putsInPlace)
        switch self.transfers.change(id, { $0.stepReception { $0.kept(row, failure, isOpen: isOpen, hasPlace: hasPlace) } }) {
        case .wait?, nil: break
        case .place?: self.emit(.transfer(id, .place(row)))
        case .complete?: self.complete(row)
        // The caller was told that it is cancelled. The row is written first, because a start must not look for content that has been
        // removed.
        case .undo?: self.commit(.undone(id), [.putResource(transfer.row)])
        case .removeContent?: self.removeContent(of: id)
        }
    }

    mutating func receptionUndone(_ id: ResourceID, _ error: EarshotError?) {
        switch self.transfers.change(id, { $0.undone(isWritten: error == nil) }) {
        case .removeContent?, nil: self.removeContent(of: id)
        case .stay?: self.transferRested(id)
        }
    }

    /// Handles the outcome of moving the content to the directory of received files. If it failed, the content stays in the spool, and the
    /// row says why.
    mutating func downloadPlaced(_ id: ResourceID, _ result: Result<String?, EarshotError>) {
        guard let transfer = self.transfers[id], var row = transfer.reception.placing else { return }
        let isLeft = !transfer.isOpen
        switch result {
        case .success(let path?):
            row.path = path
            row.inSpool = false
        case .success(nil): break
        case .failure(let error) where error.code == .conflict && !isLeft:
            // The name was taken in the meantime, and nothing may be replaced or renamed. The row is written first, because a start must
            // not look for content that has been removed.
            var failed = transfer
            failed.end(.failed, error, at: self.now.wall, isUntold: false)
            self.commit(.misplaced(id, TransferFailure(error, told: Refusal(toPeer: error))), [.putResource(failed.row)])
            return
        case .failure(let error): self.leave(&row, error)
        }
        self.commit(.placed(row), ([row] + self.replaced(by: row)).map { .putResource($0) })
    }

    /// Returns the rows of earlier files at whose path this file is now, without their path. Rows that are being removed are left out.
    private func replaced(by row: Resource) -> [Resource] {
        guard let path = row.path else { return [] }
        return self.transfers.all.compactMap { transfer in
            guard transfer.row.direction == .incoming, transfer.row.id != row.id, !transfer.isBeingRemoved,
                transfer.row.path?.utf8.elementsEqual(path.utf8) == true
            else { return nil }
            var replaced = transfer.row
            replaced.path = nil
            return replaced
        }
    }

    private mutating func leave(_ row: inout Resource, _ error: EarshotError) {
        self.log(Notice(.error, "a received file stays in the spool", ["id": row.id, "error": error]))
        row.error = error.code
        row.errorMessage = "\(error.message); its content is kept"
    }

    /// Fails a transfer that cannot be put in its place. If the disk refuses that row, the resource counts as received, and its content
    /// stays here.
    mutating func misplacementKept(_ id: ResourceID, _ failure: TransferFailure, _ error: EarshotError?) {
        guard var row = self.transfers[id]?.reception.placing else { return }
        switch self.transfers.change(id, { $0.stepReception { $0.misplaced(failure, isWritten: error == nil) } }) {
        case .removeContent?: self.removeContent(of: id)
        case .finish?:
            self.leave(&row, failure.error)
            self.placed(row)
        case nil: break
        }
    }

    mutating func placeKept(_ row: Resource, _ error: EarshotError?) {
        var row = row
        if let error {
            // The resource is in its place. The store says that it is also in the spool, so it stays there until a caller drops it.
            self.log(Notice(.error, "cannot record where a received file is", ["id": row.id, "error": error]))
            row.inSpool = true
        } else if !row.inSpool {
            for replaced in self.replaced(by: row) { self.transfers.change(replaced.id) { $0.replaced() } }
        }
        switch self.transfers.change(row.id, { $0.stepReception { $0.placed(row) } }) {
        case .removeContent?: self.removeContent(of: row.id)
        case .finish?: self.placed(row)
        case nil: break
        }
    }

    private mutating func removeContent(of id: ResourceID) { self.emit(.transfer(id, .removeContent(for: nil))) }

    /// Handles content that the spool has removed, or could not remove.
    mutating func contentRemoved(_ id: ResourceID, _ error: EarshotError?) {
        if let error { self.log(Notice(.error, "content of a file stays in the spool", ["id": id, "error": error])) }
        switch self.transfers.change(id, { $0.stepReception { $0.contentRemoved(error) } }) {
        case .wait?, nil: break
        case .finish(let row)?: self.placed(row)
        case .fail(let failure)?:
            self.downloadFailed(id, failure)
            self.transferRested(id)
        case .rest?: self.transferRested(id)
        }
    }

    private mutating func placed(_ row: Resource) {
        guard self.transfers[row.id]?.isOpen == false else { return self.complete(row) }
        self.transfers.change(row.id) { $0.received(as: row) }
        if row.path != nil { self.publish(.resourceFinished(row)) }
    }

    /// Completes a download that is received, in its place and committed, and tells its sender.
    private mutating func complete(_ row: Resource) {
        guard let download = self.transfers[row.id], download.isOpen else { return }
        self.transfers.change(row.id) { $0.received(as: row) }
        self.limit(row.id, to: nil)
        self.closeData(TransferID(row.id))
        self.publish(.resourceFinished(row))
        if row.isFromDevice { self.deviceUploadEnded(row) }
        self.forgetFinishedTransfers(endedBy: row.peerID)
        // On another connection the sender offers it again, and is answered then.
        if let link = download.link, self.records[row.peerID]?.connection == link { self.send(.resource(.done(row.id)), on: link) }
        if download.hasMover { self.emit(.transfer(row.id, .stop(isKept: true))) }
    }
}

extension TransferRecord {
    /// Returns the row of an incoming transfer whose content is verified and on disk.
    fileprivate func received(_ digest: String, at now: WallTime) -> Resource {
        var row = self.row
        row.digest = digest
        row.inSpool = true
        row.state = .completed
        row.transferred = row.size
        row.bytesPerSecond = 0
        row.secondsLeft = nil
        row.completed = now
        return row
    }
}
