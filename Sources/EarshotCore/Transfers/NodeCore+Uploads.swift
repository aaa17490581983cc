import EarshotWire
import OrderedCollections

/// Sending resources: the callers' requests, the start of movers, and the receiver's answers.
extension NodeCore {
    // MARK: Beginning

    /// Checks whether `count` more resources may be queued.
    /// - Throws: `no-space`.
    package func checkQueue(adding count: Int) throws(EarshotError) {
        let waiting = self.transfers.count(.openOutgoing)
        guard waiting + count <= EarshotLimits.queuedResources else {
            throw EarshotError(.noSpace, "\(waiting) files wait for their receivers already; try again later")
        }
    }

    /// Sends resources. Queued ones are on disk before they begin, all of them or none.
    mutating func send(_ drafts: [ResourceDraft], _ call: CallID) {
        guard !self.isStopping else { return self.answer(call, .failure(.stopping)) }
        var records: [TransferRecord] = []
        for draft in drafts { records.append(self.record(draft)) }
        guard drafts.contains(where: \.isQueued) else {
            for record in records { self.keepTransfer(record, isNew: true) }
            return self.answer(call, .resources(records.map { self.beginUpload($0) }))
        }
        self.commit(.queued(records, call), records.flatMap(\.operations))
    }

    /// Sends a body that the caller supplies, or a file that it holds open. The caller is answered at the end of the transfer.
    mutating func sendBody(_ draft: ResourceDraft, _ call: CallID) {
        guard !self.isStopping, !self.streams.isOver else { return self.answer(call, .failure(.stopping)) }
        let record = self.record(draft, for: call)
        self.keepTransfer(record, isNew: true)
        _ = self.beginUpload(record)
    }

    private mutating func record(_ draft: ResourceDraft, for caller: CallID? = nil) -> TransferRecord {
        let peer = draft.conversation.peer
        let name = peer.kind == .localsend ? self.shown(peer).name : self.records[peer]?.name
        let row = Resource(
            id: draft.id, direction: .outgoing, peerID: peer, peerName: name ?? peer.description,
            group: draft.conversation.group.map(self.label), shareID: draft.shareID, name: draft.name, kind: draft.kind, size: draft.size,
            state: .offered, path: draft.path, created: self.now.wall)
        // Nothing resumes at a device.
        let usual = peer.kind == .localsend ? EarshotLimits.resourceReachTime : EarshotLimits.resourceResumeTime
        let patience = draft.isQueued ? self.settings.outboxAge : usual
        let algorithm: ResourceEnd.DigestAlgorithm =
            switch draft.digest {
            case .xxh3: .xxh3
            case .sha256: .sha256
            }
        let stored = StoredTransfer(
            id: draft.id, source: draft.source, stamp: draft.stamp, digest: algorithm, isQueued: draft.isQueued,
            expiry: self.now.running + patience, limit: draft.limit)
        return TransferRecord(row: row, stored: stored, attributes: draft.attributes, caller: caller, pin: draft.pin)
    }

    /// Adds a transfer, begins it if possible, and returns its row.
    mutating func beginUpload(_ record: TransferRecord) -> Resource {
        let (id, peer) = (record.row.id, record.row.peerID)
        let isQueued = record.stored?.isQueued == true
        if peer.kind == .localsend { return self.shipResource(record) }
        self.transfers.put(record)
        let conversation = record.conversation
        let isToGroup = conversation.group != nil
        if !self.mayGoOn(conversation), isToGroup || (isQueued && self.records[peer]?.trust != .trusted) {
            // The session or membership that it waits for ended while the disk was busy.
            let error = isToGroup ? .notMember(record.row.peerName) : EarshotError(.notConnected, "the session has ended")
            self.finishTransfer(id, .failed, error)
            return self.transfers[id]?.row ?? record.row
        }
        if self.carrier(of: conversation) == nil { self.limit(id, to: isQueued ? .absence : .reach) }
        self.startUploads(to: peer)
        if !isToGroup { self.needed(.sessionForQueue, of: peer) }
        self.needed(.connection(now: false), of: peer)
        return self.transfers[id]?.shown(at: self.now.monotonic) ?? record.row
    }

    /// Begins or resumes the waiting transfers of a peer, if it is connected and has movers free.
    mutating func startUploads(to peer: PeerID) {
        guard !self.isStopping, let link = self.records[peer]?.connection else { return }
        // A transfer that waits for its turn has no time limit.
        for id in self.transfers.ids(of: peer, .readyInTime) where self.isAttached(self.transfers[id]) { self.limit(id, to: nil) }
        // This runs twice for each transfer that ends. With all movers busy, a thousand waiting transfers cost next to nothing.
        let free = EarshotLimits.outgoingTransfers - self.transfers.count(of: peer, .outgoingMover)
        guard free > 0 else { return }
        var begun = 0
        for id in self.transfers.ids(of: peer, .ready) where begun < free {
            guard let upload = self.transfers[id], let stored = upload.stored, self.isAttached(upload), self.hasTurn(upload) else {
                continue
            }
            let now = self.now.monotonic
            self.transfers.change(id) { $0.begin(on: link, at: now) }
            self.emit(.transfer(id, .open(upload.row, stored.source)))
            begun += 1
        }
    }

    /// Whether a transfer's conversation has a carrier now.
    private func isAttached(_ transfer: TransferRecord?) -> Bool { transfer.map { self.carrier(of: $0.conversation) != nil } ?? false }

    /// Whether the transfers of a conversation may resume later: the peers are in a session, or both in the group.
    func mayGoOn(_ conversation: Conversation) -> Bool {
        if let group = conversation.group { return self.isFellowMember(conversation.peer, in: group) }
        return self.records[conversation.peer]?.sessionID != nil
    }

    // MARK: Shares

    /// Whether a transfer of a share may begin. Few of them move at a time, so that few movers read the source and the first recipients are
    /// done soon. A stalled transfer does not count.
    private mutating func hasTurn(_ upload: TransferRecord) -> Bool {
        guard let share = upload.row.shareID else { return true }
        let now = self.now.monotonic
        let moving = self.transfers.transfers(of: share).count { other in
            other.hasMover && other.isOpen && other.lastMoved.map { now - $0 < EarshotLimits.shareStallTime } ?? false
        }
        guard moving >= EarshotLimits.shareTransfers else { return true }
        if !self.deadlines.contains(.share(share)) { self.set(.share(share), after: EarshotLimits.shareStallTime) }
        return false
    }

    /// Begins the waiting transfers of a share, after one has stopped moving or some may have stalled.
    mutating func startShare(_ share: ShareID) {
        self.deadlines.cancel(.share(share))
        for transfer in self.transfers.transfers(of: share) where transfer.isOpen && !transfer.hasMover {
            self.startUploads(to: transfer.row.peerID)
        }
    }

    /// Offers a source that is now open. If it has changed since the receiver last accepted it, it is sent from its beginning. Until the
    /// receiver accepts the new source, the row describes the old one, since that may have arrived.
    mutating func sourceOpened(_ id: ResourceID, _ source: OpenedSource?) {
        guard let before = self.transfers[id], before.isMoving, let link = before.link,
            let session = self.carrier(of: before.conversation)?.session
        else { return }
        let isChanged = source.map { $0.stamp != before.stored?.stamp } ?? false
        if isChanged { self.log(Notice(.info, "the source of a transfer has changed", ["id": id])) }
        var offer = before.offer(in: session)
        if let source { offer.size = source.size }
        if before.row.kind == .file, self.takesAttributes(before.row.peerID) { offer.attributes = source?.attributes ?? before.attributes }
        self.transfers.change(id) { $0.offer(changed: isChanged ? source : nil) }
        self.send(.resource(.offer(offer)), on: link)
        self.limit(id, to: .answer)
    }

    /// Whether a peer's hello says that it accepts offers of files with their attributes.
    private func takesAttributes(_ peer: PeerID) -> Bool {
        self.records[peer]?.link.current?.facts.peer.extensions.announce(.fileAttributes) ?? false
    }

    /// Records that the receiver accepts the changed source. Nothing of it is sent before that is on disk: after a restart, the receiver's
    /// content is taken to be of the source in the row.
    private mutating func adoptSource(of id: ResourceID, for accept: ResourceAccept, on link: LinkID) {
        let isAsked = self.transfers[id]?.accepted != nil
        guard let adopted = self.transfers.change(id, { $0.adopts(accept) }), !isAsked else { return }
        self.commit(.adopted(id, on: link), adopted.operations)
    }

    /// Continues after the changed source was recorded, or failed to be.
    mutating func sourceAdopted(_ id: ResourceID, on link: LinkID, _ error: EarshotError?) {
        // If the connection was lost meanwhile, nothing was sent, and the old row has been written behind this commit.
        guard !self.isStopping, let upload = self.transfers[id], upload.isMoving, upload.link == link, let accept = upload.accepted else {
            return
        }
        if let error {
            let told = Refusal(error.code, "its sender's disk does not take it")
            return self.endTransfer(id, error.code, "its source has changed, which cannot be recorded: \(error.message)", told: told)
        }
        self.transfers.change(id) { $0.adopt() }
        self.goOn(by: accept, isFirst: true)
    }

    // MARK: Moving

    /// Handles the receiver's acceptance, or its report of how much it has.
    mutating func resourceAccepted(_ accept: ResourceAccept, by peer: PeerID) {
        guard let upload = self.transfers[accept.id], upload.peerID == peer, upload.row.direction == .outgoing, upload.isMoving,
            accept.offset <= accept.limit
        else { return }
        let isFirst = upload.upload.awaitsAcceptance
        // EarshotWire has checked this too; the core does not depend on it.
        guard accept.limit <= (isFirst ? upload.opened?.size : nil) ?? upload.row.size else { return }
        if isFirst, upload.opened != nil, let link = upload.link { return self.adoptSource(of: accept.id, for: accept, on: link) }
        self.goOn(by: accept, isFirst: isFirst)
    }

    private mutating func goOn(by accept: ResourceAccept, isFirst: Bool) {
        if isFirst {
            self.limit(accept.id, to: .movement(beyond: accept.offset))
            self.progressed(accept.id, to: accept.offset)
        }
        let size = self.transfers[accept.id]?.row.size ?? 0
        self.stepUpload(accept.id) { $0.accepted(from: accept.offset, upTo: accept.limit, of: size) }
    }

    /// Handles the receiver's confirmation that it has published the resource.
    mutating func resourceDone(_ id: ResourceID, by peer: PeerID) {
        guard let upload = self.transfers[id], upload.peerID == peer, upload.row.direction == .outgoing else { return }
        self.stepUpload(id) { $0.done() }
    }

    /// Handles the receiver's report that it holds the beginning from an earlier connection.
    mutating func resourceHeld(_ have: ResourceHave, by peer: PeerID) {
        guard let upload = self.transfers[have.id], upload.peerID == peer, upload.row.direction == .outgoing else { return }
        self.stepUpload(have.id) { $0.held(have.offset, have.digest) }
    }

    mutating func stepUpload(_ id: ResourceID, _ event: (inout UploadStateMachine) -> UploadStateMachine.Action) {
        guard let upload = self.transfers[id], upload.isMoving, let link = upload.link, let algorithm = upload.stored?.digest,
            let action = self.transfers.change(id, { $0.stepUpload(event) })
        else { return }
        switch action {
        case .wait: break
        case .compare(let count):
            self.limit(id, to: .comparison)
            self.emit(.transfer(id, .compare(count)))
        case .goOn(let offset):
            self.send(.resource(.from(ResourceFrom(id: id, offset: offset))), on: link)
            self.limit(id, to: .answer)
        case .send(let start, let end):
            self.moveElsewhere(id, false)
            self.emit(.transfer(id, .send(from: start, upTo: end, on: link)))
        case .openData:
            self.moveElsewhere(id, false)
            self.openData(.resource(id), with: upload.peerID)
        case .sendOverData(let offset):
            self.moveElsewhere(id, true)
            self.emit(.transfer(id, .sendOverData(from: offset)))
        case .digest:
            self.moveElsewhere(id, false)
            self.emit(.transfer(id, .digest(algorithm)))
        case .complete: self.finishTransfer(id, .completed)
        }
    }

    mutating func sourceDigested(_ id: ResourceID, _ digest: [UInt8]) {
        guard let upload = self.transfers[id], upload.isMoving, let algorithm = upload.stored?.digest,
            self.transfers.change(id, { $0.digested(ResourceDigest(algorithm, digest)) }) == true
        else { return }
        self.limit(id, to: .done)
        self.send(.resource(.end(ResourceEnd(id: id, algorithm: algorithm, digest: digest))), on: upload.link)
    }

    // MARK: Ending

    /// Ends transfers of callers' bodies and open files because the daemon is about to stop: their connections would delay the stop.
    mutating func endBodies() {
        for id in self.transfers.ids(.openOutgoing) where self.transfers[id]?.stored?.source.isOfCaller == true {
            self.endTransfer(id, EarshotError.stopping.code, EarshotError.stopping.message, told: TransferFailure(.stopping).told)
        }
    }

    /// Ends a transfer whose caller has disconnected.
    mutating func abandonUpload(_ id: ResourceID) {
        guard let row = self.transfers[id]?.row else { return }
        self.endTransfer(
            id, .cancelled, "its caller left after \(row.transferred) of \(row.size) bytes",
            told: Refusal(code: .cancelled, explanation: "its sender has gone"))
    }
}
