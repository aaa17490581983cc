package import EarshotWire
import OrderedCollections

/// Listing resources, the callers' requests about them, and the reports of movers and the disk.
extension NodeCore {
    // MARK: Listing

    /// Returns every transfer, running or finished, oldest first, as of `now`.
    package func resources(at now: MonotonicInstant) -> [Resource] { self.transfers.all.map { $0.shown(at: now) } }

    package func resources(of share: ShareID, at now: MonotonicInstant) -> [Resource] {
        self.transfers.transfers(of: share).map { $0.shown(at: now) }
    }

    /// - Throws: `not-found`.
    package func resource(_ id: ResourceID, at now: MonotonicInstant) throws(EarshotError) -> Resource {
        try self.knownTransfer(id).shown(at: now)
    }

    /// Returns a received resource that is complete and not being put in its place.
    /// - Throws: `not-found`, `conflict`.
    package func receivedResource(_ id: ResourceID) throws(EarshotError) -> Resource {
        let transfer = try self.knownTransfer(id)
        let row = transfer.row
        guard row.direction == .incoming, row.state == .completed else {
            throw EarshotError(.conflict, "the resource \(id) is not a received one that is complete")
        }
        guard !transfer.reception.isPlacing else { throw .isPlacing(id) }
        return row
    }

    /// Returns the recipients of a resource or message that is sent to a group.
    /// - Throws: `unavailable`, `unknown-group`, `ambiguous-group`, `invalid-parameter` if there are no other members.
    package func conversations(inGroup name: String) throws(EarshotError) -> [Conversation] {
        guard !self.isStopping else { throw .stopping }
        let group = try self.groupID(name)
        let members = self.fellowMembers(of: group)
        guard !members.isEmpty else { throw .aloneInGroup(self.label(of: group)) }
        return members.map { Conversation(with: $0, in: group) }
    }

    /// Returns the number of unfinished transfers of one direction.
    package func openTransfers(_ direction: Direction) -> Int {
        self.transfers.count(direction == .incoming ? .openIncoming : .openOutgoing)
    }

    /// Transfers with content in the spool: complete incoming ones, unfinished incoming ones, and outgoing ones with their source there.
    package var spooled: (complete: [ResourceID], unfinished: [ResourceID], outgoing: [ResourceID]) {
        let all = self.transfers.all
        return (
            all.filter { $0.row.inSpool && $0.row.state == .completed }.map(\.row.id),
            all.filter { $0.isOpen && $0.isTaken && $0.row.direction == .incoming }.map(\.row.id),
            all.filter { $0.isOpen && $0.stored?.source == .spool }.map(\.row.id)
        )
    }

    func knownTransfer(_ id: ResourceID) throws(EarshotError) -> TransferRecord {
        guard let transfer = self.transfers[id] else { throw EarshotError(.notFound, "there is no resource \(id)") }
        return transfer
    }

    // MARK: Calls

    mutating func take(_ request: ResourceRequest, _ call: CallID) {
        do throws(EarshotError) {
            switch request {
            case .send(let drafts): self.send(drafts, call)
            case .sendBody(let draft): self.sendBody(draft, call)
            case .respond(let id, let decision): try self.respond(to: id, decision, call)
            case .remove(let id): try self.removeResource(id, call)
            case .removeShare(let id): try self.removeShare(id, call)
            case .dropContent(let id): try self.dropContent(id, call)
            }
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Drops a received resource's content, and keeps its row. Fetching a resource ends with this.
    private mutating func dropContent(_ id: ResourceID, _ call: CallID) throws(EarshotError) {
        let transfer = try self.knownTransfer(id)
        guard transfer.row.direction == .incoming, !transfer.isOpen else { return self.answer(call, .done) }
        guard !transfer.reception.isActive else { throw .isPlacing(id) }
        guard transfer.hasContent else { return self.answer(call, .done) }
        guard !transfer.isBeingRemoved else { throw .isBeingRemoved(id) }
        guard !self.isStopping else { throw .stopping }
        // Another caller has begun the removal, or the spool has refused it. This caller is answered when the content is gone.
        guard transfer.row.inSpool else { return self.emit(.transfer(id, .removeContent(for: call))) }
        var dropped = transfer.row
        dropped.inSpool = false
        // The row is written first. The next start sweeps content without a row, while a row without content would be wrong.
        self.commit(.dropped(id, call), [.putResource(dropped)])
    }

    private mutating func removeResource(_ id: ResourceID, _ call: CallID) throws(EarshotError) {
        let transfer = try self.knownTransfer(id)
        guard !transfer.reception.isPlacing else { throw .isPlacing(id) }
        guard !transfer.isOpen else {
            if transfer.row.isFromDevice { self.cancelDeviceSession(of: id) }
            self.endTransfer(id, .cancelled, "cancelled here", told: Refusal(code: .cancelled, explanation: "cancelled by a user"))
            self.commit(.ended([self.transfers[id]?.row ?? transfer.row], .transfer(call)), [])
            return
        }
        guard !transfer.isBeingRemoved else { throw .isBeingRemoved(id) }
        guard !self.isStopping else { throw .stopping }
        // An outgoing transfer need not be at rest, because its id is never used again.
        guard transfer.isAtRest || transfer.row.direction == .outgoing else {
            self.transfers.change(id) { $0.removeAtRest(for: call) }
            return
        }
        let commit = self.commit(.removed(transfer.row, hasContent: transfer.hasContent, call), self.removal(of: transfer))
        self.transfers.change(id) { $0.removalBegan(commit) }
    }

    /// Cancels or removes all transfers of one resource to a group.
    private mutating func removeShare(_ id: ShareID, _ call: CallID) throws(EarshotError) {
        let transfers = self.transfers.transfers(of: id)
        guard !transfers.isEmpty else { throw EarshotError(.notFound, "there is no resource and no share \(id)") }
        let open = transfers.filter(\.isOpen)
        guard open.isEmpty else {
            for transfer in open {
                let told = Refusal(code: .cancelled, explanation: "cancelled by a user")
                self.endTransfer(transfer.row.id, .cancelled, "cancelled here", told: told)
            }
            self.commit(.ended(transfers.map { self.transfers[$0.row.id]?.row ?? $0.row }, .share(call)), [])
            return
        }
        if let removed = transfers.first(where: { $0.unwantedBy != nil }) { throw .isBeingRemoved(removed.row.id) }
        guard !self.isStopping else { throw .stopping }
        let commit = self.commit(.removedShare(transfers.map(\.row), call), transfers.flatMap(self.removal))
        for transfer in transfers { self.transfers.change(transfer.row.id) { $0.removalBegan(commit) } }
    }

    /// Handles the removal of a row from disk, or its failure. A transfer that was offered again meanwhile stays, even if it is over again:
    /// its new row was written behind the removal.
    private mutating func removed(_ row: Resource, by commit: CommitID, _ error: EarshotError?) {
        guard let transfer = self.transfers[row.id], transfer.unwantedBy == commit else { return }
        guard error == nil else {
            self.transfers.change(row.id) { $0.removalFailed() }
            return
        }
        self.forget(transfer)
        if row.direction == .outgoing { self.startUploads(to: row.peerID) }
    }

    // MARK: On disk

    /// Writes a row and the transfer's resumption data, without a caller waiting for it.
    mutating func keepTransfer(_ transfer: TransferRecord, isNew: Bool = false) {
        self.emit(.keepTransfers([.put(transfer.row, isNew: isNew)] + (transfer.stored.map { [.putTransfer($0)] } ?? [])))
    }

    @discardableResult
    mutating func commit(_ commit: TransferCommit, _ operations: [StoreOperation]) -> CommitID {
        let id = self.nextCommit()
        self.transfers.begin(commit, as: id)
        self.emit(.commit(id, operations))
        return id
    }

    /// Handles a finished commit; `false` if it was not a commit of transfers.
    mutating func transferCommitted(_ id: CommitID, _ error: EarshotError?) -> Bool {
        guard let commit = self.transfers.end(id) else { return false }
        switch commit {
        case .queued(let records, let call):
            if let error {
                for record in records { if let stored = record.stored { self.emit(.transfer(record.row.id, .discard(stored.source))) } }
                self.answer(call, .failure(error))
                return true
            }
            self.answer(call, .resources(records.map { self.beginUpload($0) }))
        case .adopted(let id, let link): self.sourceAdopted(id, on: link, error)
        case .received(let row): self.downloadKept(row, error)
        case .placed(let row): self.placeKept(row, error)
        case .misplaced(let id, let failure): self.misplacementKept(id, failure, error)
        case .undone(let id): self.receptionUndone(id, error)
        case .dropped(let id, let call):
            if let error {
                self.answer(call, .failure(error))
                return true
            }
            self.transfers.change(id) { $0.dropped() }
            self.emit(.transfer(id, .removeContent(for: call)))
        case .removed(let row, let hasContent, let call):
            self.removed(row, by: id, error)
            if let error {
                self.answer(call, .failure(error))
                return true
            }
            guard hasContent else {
                self.answer(call, .done)
                return true
            }
            self.emit(.transfer(row.id, .removeContent(for: call)))
        case .removedShare(let rows, let call):
            // These are outgoing: the spool keeps no content of them.
            for row in rows { self.removed(row, by: id, error) }
            self.answer(call, error.map { .failure($0) } ?? .resources([]))
        case .ended(let rows, let call): self.endsKept(rows, call, error)
        }
        return true
    }

    // MARK: Reports

    /// Handles a report of a transfer's mover.
    mutating func transferReported(_ id: ResourceID, _ report: TransferReport) {
        switch report {
        case .stopped: return self.moverStopped(id)
        case .contentRemoved(let call?, let error):
            if error == nil { self.transfers.change(id) { $0.stepReception { $0.dropConfirmed() } } }
            return self.answer(call, error.map { .failure($0) } ?? .done)
        default: break
        }
        // The next start continues the rest.
        guard !self.isStopping else { return }
        switch report {
        case .opened(let source): self.sourceOpened(id, source)
        case .compared(let digest): self.stepUpload(id) { $0.compared(digest) }
        case .sent(let offset): self.uploaded(id, to: offset)
        // The next data connection may already be established.
        case .dataSent(let offset): self.progressed(id, to: offset)
        case .digested(let digest): self.sourceDigested(id, digest)
        case .room(let failure): self.offerChecked(id, failure)
        case .held(let held): self.stepDownload(id) { download, _, _ in download.held(held) }
        case .began: self.stepDownload(id) { $0.began(size: $1, window: $2) }
        case .listed(let bytes): if bytes <= EarshotLimits.shortTreeList { self.endList(id) }
        case .written(let offset): self.resourceWritten(id, to: offset)
        case .dataEnded(let offset): self.downloadDataEnded(id, at: offset)
        case .bodyEnded: self.deviceBodyEnded(id)
        case .settled(let digest): self.downloadSettled(id, digest)
        case .placed(let result): self.downloadPlaced(id, result)
        case .moved(let offset): if self.deadlines.contains(.progress(id)) { self.progressed(id, to: offset) }
        case .failed(let failure): self.transferFailed(id, failure)
        case .abandoned: self.abandonUpload(id)
        case .contentRemoved(_, let error): self.contentRemoved(id, error)
        case .stopped: break
        }
    }

    private mutating func uploaded(_ id: ResourceID, to offset: UInt64) {
        guard let upload = self.transfers[id], upload.isMoving else { return }
        self.progressed(id, to: offset)
        self.stepUpload(id) { $0.sent(to: offset, of: upload.row.size) }
    }

    /// Handles the outcome of an attempt to open a data connection.
    mutating func transferDataOpened(_ id: ResourceID, _ stands: Bool) {
        guard !self.isStopping, let transfer = self.transfers[id] else { return }
        switch transfer.row.direction {
        case .outgoing: self.stepUpload(id) { $0.dataOpened(stands) }
        case .incoming: self.stepDownload(id) { $0.dataOpened(stands, size: $1, window: $2) }
        }
    }

    private mutating func transferFailed(_ id: ResourceID, _ failure: TransferFailure) {
        // A whole resource that is being put in its place or removed can no longer fail.
        guard let transfer = self.transfers[id], transfer.isMoving, !transfer.reception.isPlacing, !transfer.reception.isRemoving
        else { return }
        switch transfer.row.direction {
        case .outgoing: self.endTransfer(id, failure.error.code, failure.error.message, told: failure.told)
        case .incoming: self.downloadFailed(id, failure)
        }
    }
}

extension EarshotError {
    fileprivate static func isPlacing(_ id: ResourceID) -> Self {
        Self(.conflict, "the resource \(id) has arrived and is being put in place; try it again afterwards")
    }

    fileprivate static func isBeingRemoved(_ id: ResourceID) -> Self { Self(.conflict, "the resource \(id) is being removed") }
}
