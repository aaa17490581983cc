import EarshotWire
import OrderedCollections

/// The files of accepted offers. An upload is a transfer like any other: it is listed, moved by a mover into the spool, verified, committed
/// and put in its place. Nothing resumes: an interrupted upload has failed, and its content is removed.
extension NodeCore {
    mutating func deviceUploads(_ upload: DeviceUpload, by sender: DeviceSender, _ call: CallID) throws(DeviceRefusal) {
        guard !self.isStopping else { throw .failed }
        guard let id = SessionID(upload.session), let session = self.devices.sessions[id], session.sender.isSame(as: sender),
            let file = session.files[upload.file], areEqual(secret: file.token, upload.token), file.state == .awaited
        else { throw .declined }
        guard session.movingCount < EarshotLimits.deviceUploads else { throw .busy }
        let offered = file.upload
        let row = Resource(
            id: offered.resource, direction: .incoming, peerID: session.peer, peerName: session.name, name: offered.path.name,
            folder: offered.path.folder, kind: .file, size: offered.file.size, state: .offered, created: self.now.wall)
        let stored = StoredTransfer(id: row.id, source: .none, isTaken: true, expiry: self.now.running)
        let attributes = offered.file.modified.map { FileAttributes(modifiedAt: $0.milliseconds) }
        var record = TransferRecord(row: row, stored: stored, attributes: attributes)
        record.begin(for: offered.file.sha256, at: self.now.monotonic)
        let now = self.now.monotonic
        _ = self.devices.change(id) { $0.begin(upload.file, for: call, at: now) }
        self.devices.beginUpload(row.id, of: upload.file, in: id)
        self.transfers.put(record)
        self.keepTransfer(record, isNew: true)
        self.publish(.resourceOffered(row))
        self.emit(.transfer(row.id, .receiveBody(row, session.share, record.attributes, call)))
        // Only now, because the limit gives the mover its rate.
        self.limit(row.id, to: .movement(beyond: 0))
    }

    /// Records that bytes of an upload have come.
    mutating func deviceBytesCame(_ id: ResourceID) {
        let now = self.now.monotonic
        if let session = self.devices.session(of: id) { _ = self.devices.change(session) { $0.byteCame(at: now) } }
    }

    /// Verifies and saves an upload whose last byte is written.
    mutating func deviceBodyEnded(_ id: ResourceID) {
        guard let upload = self.transfers[id], upload.isMoving, upload.row.isFromDevice, !upload.reception.isActive else { return }
        self.transfers.change(id) { $0.stepReception { $0.settle() } }
        self.limit(id, to: nil)
        self.emit(.transfer(id, .settle(upload.offeredDigest.map { ResourceDigest(.sha256, $0) })))
    }

    /// Answers the sender of an upload that has ended, and ends the session with its last file.
    mutating func deviceUploadEnded(_ row: Resource) {
        guard let (id, file) = self.devices.endUpload(row.id), case .moving(let call)? = self.devices.sessions[id]?.files[file]?.state
        else { return }
        let outcome: DeviceUploadEnd =
            row.state == .completed ? .received : row.error == .digestMismatch ? .mismatched : .failed
        let next: ResourceID = self.fresh()
        _ = self.devices.change(id) { $0.end(file, outcome, next: next) }
        if outcome == .received {
            self.answer(call, .done)
        } else {
            self.refuse(call, DeviceRefusal(EarshotError(row.error ?? .storage, row.errorMessage ?? "")))
        }
        if self.devices.sessions[id]?.isOver == true { self.endDeviceSession(id) }
    }

    // MARK: Sessions

    /// Ends a session whose sender has sent nothing for a while. A file that is being verified or put in its place takes its time.
    mutating func deviceSessionExpired(_ id: SessionID) {
        guard let session = self.devices.sessions[id] else { return }
        let isWithDisk = session.moving.contains { self.transfers[$0.resource]?.reception.isActive == true }
        let due = (isWithDisk ? self.now.monotonic : session.lastByte) + EarshotLimits.deviceTokenTime
        guard due <= self.now.monotonic else { return self.set(.deviceSession(id), after: due - self.now.monotonic) }
        let words = "no byte came for \(EarshotLimits.deviceTokenTime.components.seconds) s; send it again"
        self.endDeviceSession(id, EarshotError(.timedOut, words))
    }

    /// Ends a session with its tokens. The error is that of its uploads under way, which also end.
    mutating func endDeviceSession(_ id: SessionID, _ error: EarshotError? = nil) {
        self.deadlines.cancel(.deviceSession(id))
        guard let session = self.devices.sessions[id] else { return }
        if let error {
            for (resource, _) in session.moving where self.transfers[resource]?.reception.isPlacing != true {
                self.interruptTransfer(resource, error.code, error.message)
            }
        }
        // The end of its last upload may have ended the session.
        guard let session = self.devices.endSession(id) else { return }
        for (_, call) in session.moving { self.refuse(call, error.map { DeviceRefusal($0) } ?? .failed) }
        if !session.reserved.isEmpty { self.emit(.device(.release(session.reserved))) }
        if let peer = session.sender.id { self.publishDevice(peer) }
    }

    /// Ends the session of an upload that a user here has cancelled, and tells its sender.
    mutating func cancelDeviceSession(of resource: ResourceID) {
        guard let id = self.devices.session(of: resource), let session = self.devices.sessions[id] else { return }
        self.endDeviceSession(id, EarshotError(.cancelled, "cancelled here"))
        guard let peer = session.sender.id, let port = session.port, EarshotLimits.devicePorts.contains(port) else { return }
        let place = PeerAddress(host: session.sender.address.host, zone: session.sender.address.zone, port: port)
        self.emit(.device(.cancel(session: id.description, DeviceTarget(id: peer, address: place))))
    }

    /// Handles a device's cancellation: of its pending offer, or of a session.
    mutating func deviceCancels(_ session: String?, _ sender: DeviceSender) {
        if let session {
            guard let id = SessionID(session), self.devices.sessions[id]?.sender.isSame(as: sender) == true else {
                return self.cancelShipment(session, by: sender)
            }
            return self.endDeviceSession(id, EarshotError(.cancelled, "its sender cancelled it"))
        }
        guard let (id, offer) = self.devices.offers.elements.last(where: { $0.value.sender.isSame(as: sender) }) else {
            return
        }
        if offer.stage == .delivering { return }
        self.resolveInvitation(id, .cancelled)
    }

    /// Ends the sessions of a device that is being blocked.
    mutating func endDeviceSessions(of id: PeerID) {
        for session in self.devices.sessions.values where session.sender.id == id {
            self.endDeviceSession(session.id, EarshotError(.forbidden, "a user here has blocked the device"))
        }
    }

    /// Refuses everything that devices wait for, because the node has stopped.
    mutating func dismissDevices() {
        let (devices, users) = self.devices.dismiss()
        for call in devices { self.refuse(call, .failed) }
        for call in users { self.answer(call, .failure(.stopping)) }
    }
}

extension Resource {
    /// Whether a LocalSend device sends it.
    var isFromDevice: Bool { self.direction == .incoming && self.peerID.kind == .localsend }
}
