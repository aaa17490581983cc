import EarshotWire
import OrderedCollections

/// Sending messages and resources to LocalSend devices. They are requested by the same calls, listed in the same rows and expire like those
/// for peers. There is no session: each is offered, and its bytes are uploaded once the device's user has accepted.
extension NodeCore {
    // MARK: Recipients

    /// Checks that a device may be sent to. Anyone can take a device's name, so a device that is not trusted is named by its
    /// id, or by the beginning of the id.
    /// - Throws: `forbidden`, `unavailable`.
    func checkDevice(_ id: PeerID, named name: String) throws(EarshotError) {
        guard self.settings.devices.isOn else {
            throw EarshotError(.unavailable, "\(self.shown(id).name) is a LocalSend device, and LocalSend is switched off here")
        }
        let device = self.devices[id]
        guard device?.trust != .blocked else { throw .blocked(device?.name ?? name) }
        let isNamedByID = PeerNaming.idPrefix(name, of: .localsend).map { id.description.utf8.starts(with: $0) } ?? false
        guard device?.trust == .trusted || isNamedByID else {
            throw EarshotError(.forbidden, "\(name) is not trusted, and anyone can take that name; give the device's id, \(id)")
        }
    }

    // MARK: Beginning

    /// Adds something for a device, and begins to send it if the device is there and has nothing else to receive.
    mutating func ship(_ cargo: DeviceCargo, to device: PeerID) {
        self.devices.shipments.append(cargo, to: device)
        self.startShipment(to: device)
        self.seekDevices()
    }

    /// Adds a resource for a device.
    mutating func shipResource(_ record: TransferRecord) -> Resource {
        let row = record.row
        self.transfers.put(record)
        self.limit(row.id, to: .absence)
        self.ship(.resource(row.id), to: row.peerID)
        return self.transfers[row.id]?.shown(at: self.now.monotonic) ?? row
    }

    /// Announces this machine while something waits for a device that is not there.
    mutating func seekDevices() {
        let isAnyAway = self.devices.shipments.devices.contains { self.devices[$0]?.isNearby != true }
        guard isAnyAway, self.settings.devices.isOn, !self.isStopping else { return self.deadlines.cancel(.deviceSearch) }
        guard !self.deadlines.contains(.deviceSearch) else { return }
        self.set(.deviceSearch, after: EarshotLimits.deviceQueueAnnouncementInterval)
        self.deviceReported(.wanted)
    }

    mutating func searchDevices() {
        self.announceToDevices()
        self.seekDevices()
    }

    /// Begins the next attempt to send something to a device, if it is there.
    mutating func startShipment(to id: PeerID) {
        guard self.settings.devices.isOn, !self.isStopping, !self.deadlines.contains(.deviceRetry(id)), let device = self.devices[id],
            device.isNearby, device.trust != .blocked, let place = device.place,
            let cargo = self.devices.shipments.all(for: id).first, !self.isOverdue(cargo),
            let shipment = self.devices.shipments.next(to: DeviceTarget(id: id, address: place))
        else { return }
        let content: DeviceShipment
        switch shipment.cargo {
        case .message(let message):
            guard let sent = self.outgoing[message] else { return self.skip(shipment.cargo, for: id) }
            self.note(message, .sent, at: id)
            content = .message(message, contentType: sent.contentType, body: sent.body)
        case .resource(let resource):
            guard let transfer = self.transfers[resource], transfer.isOpen, let source = transfer.stored?.source else {
                return self.skip(shipment.cargo, for: id)
            }
            let now = self.now.monotonic
            self.transfers.change(resource) { $0.begin(for: nil, at: now) }
            self.limit(resource, to: .answer)
            content = .resource(transfer.row, source)
        }
        self.emit(.device(.ship(shipment.id, content, shipment.target, pin: self.pin(for: shipment.cargo))))
    }

    /// Whether the time of a cargo is over. Its own deadline ends it.
    private func isOverdue(_ cargo: DeviceCargo) -> Bool {
        switch cargo {
        case .message(let message): self.outgoing[message].map { $0.deadline <= self.now.monotonic } ?? false
        case .resource(let resource): self.transfers[resource]?.stored.map { $0.expiry <= self.now.running } ?? false
        }
    }

    private func pin(for cargo: DeviceCargo) -> String? {
        switch cargo {
        case .message(let message): self.outgoing[message]?.pin
        case .resource(let resource): self.transfers[resource]?.pin
        }
    }

    /// Records that a message is with a device, or waits for the device again. The disk has to know of a queued message, because a device
    /// does not recognise a message that comes twice.
    private mutating func note(_ id: MessageID, _ status: Message.Status, at device: PeerID) {
        self.outgoing.update(id) { $0.replace(status == .sent ? .queued : .sent, by: status, at: device) }
        guard self.outgoing[id]?.isQueued == true else { return }
        self.keep([.settle(id, Message.Recipient(peerID: device, status: status))])
    }

    private mutating func skip(_ cargo: DeviceCargo, for device: PeerID) {
        _ = self.devices.shipments.remove(cargo, of: device)
        self.startShipment(to: device)
    }

    // MARK: Reports

    mutating func shipmentReported(_ id: ShipmentID, of device: PeerID, _ report: ShipmentReport) {
        guard let shipment = self.devices.shipments.current(device), shipment.id == id else { return }
        switch report {
        case .accepted(let session):
            self.devices.shipments.accepted(session, by: device)
            if case .resource(let resource) = shipment.cargo {
                self.limit(resource, to: .movement(beyond: 0))
                self.progressed(resource, to: 0)
                // Written now, however small it is: the next start must not offer it again.
                if let row = self.transfers[resource]?.row { self.emit(.keepTransfers([.put(row, isNew: false)])) }
            }
        case .moved(let offset): if case .resource(let resource) = shipment.cargo { self.progressed(resource, to: offset) }
        case .delivered:
            // The end of the cargo must not stop the attempt.
            _ = self.devices.shipments.remove(shipment.cargo, of: device)
            switch shipment.cargo {
            case .message(let message): self.settle(message, device, .delivered, nil)
            case .resource(let resource): self.finishTransfer(resource, .completed)
            }
            self.startShipment(to: device)
        case .failed(let failure): self.shipmentFailed(shipment, failure)
        case .sourceFailed(let error): self.cargoFailed(shipment.cargo, of: device, error)
        }
    }

    private mutating func shipmentFailed(_ shipment: DeviceShipments.Shipment, _ failure: DeviceFailure) {
        let device = shipment.target.id
        let name = self.shown(device).name
        switch failure {
        case .unreachable where shipment.session == nil, .refused(status: DeviceRefusal.busy.rawValue) where shipment.session == nil:
            switch shipment.cargo {
            case .message(let message): self.note(message, .queued, at: device)
            case .resource(let resource):
                self.transfers.change(resource) { $0.moverStopped() }
                self.limit(resource, to: .absence)
            }
            self.set(.deviceRetry(device), after: self.devices.shipments.retry(device))
        case .identityMismatch:
            // Another machine has the device's address now.
            self.deviceLost(device)
            let words = "another device answered at \(shipment.target.address); \(name) is not there any more"
            self.cargoFailed(shipment.cargo, of: device, EarshotError(.identityMismatch, words))
        case .lost(let reason):
            let words = "the connection to \(name) was lost before its answer came; it may or may not have it (\(reason))"
            self.cargoFailed(shipment.cargo, of: device, EarshotError(.unconfirmed, words))
        case .unreachable(let reason):
            self.cargoFailed(shipment.cargo, of: device, EarshotError(.unavailable, "\(name) has gone: \(reason); send it again"))
        case .invalid(let reason):
            self.cargoFailed(shipment.cargo, of: device, EarshotError(.protocolViolation, "\(name) gave an invalid answer: \(reason)"))
        case .refused(let status):
            self.cargoFailed(shipment.cargo, of: device, .refused(by: name, status, hasPIN: self.pin(for: shipment.cargo) != nil))
        }
    }

    mutating func retryShipment(to device: PeerID) { self.startShipment(to: device) }

    /// Fails a message or a resource for a device.
    private mutating func cargoFailed(_ cargo: DeviceCargo, of device: PeerID, _ error: EarshotError) {
        _ = self.devices.shipments.remove(cargo, of: device)
        switch cargo {
        case .message(let message):
            self.settle(message, device, error.code == .unconfirmed ? .unconfirmed : .failed, error)
        case .resource(let resource): self.interruptTransfer(resource, error.code, error.message)
        }
        self.startShipment(to: device)
    }

    // MARK: Ends

    /// Removes a message or a resource that has ended here, and stops sending it. Returns whether it was being sent, so that the device may
    /// have it.
    @discardableResult
    mutating func cargoDone(_ cargo: DeviceCargo, of device: PeerID) -> Bool {
        guard let shipment = self.devices.shipments.remove(cargo, of: device) else {
            self.seekDevices()
            return false
        }
        self.emit(.device(.stopShipment(shipment.id)))
        if let session = shipment.session { self.emit(.device(.cancel(session: session, shipment.target))) }
        self.startShipment(to: device)
        return true
    }

    /// Ends the upload of a session that the receiving device has cancelled.
    mutating func cancelShipment(_ session: String, by sender: DeviceSender) {
        for device in self.devices.shipments.devices {
            guard let shipment = self.devices.shipments.current(device), shipment.session == session,
                shipment.target.address.host == sender.address.host, shipment.target.address.zone == sender.address.zone
            else { continue }
            self.emit(.device(.stopShipment(shipment.id)))
            let words = "\(self.shown(device).name) cancelled it"
            self.cargoFailed(shipment.cargo, of: device, EarshotError(.cancelled, words))
        }
    }

    /// Stops what is being sent, because this machine stops or LocalSend is switched off. Only what has not left this machine waits.
    mutating func interruptShipments(_ reason: String) {
        for device in self.devices.shipments.devices {
            guard let shipment = self.devices.shipments.current(device) else { continue }
            self.emit(.device(.stopShipment(shipment.id)))
            if case .message = shipment.cargo {
                self.shipmentFailed(shipment, .lost(reason))
            } else {
                self.shipmentFailed(shipment, .unreachable(reason))
            }
        }
    }

    /// Fails everything for a device that is being blocked.
    mutating func failShipments(to device: PeerID, _ error: EarshotError) {
        for cargo in self.devices.shipments.all(for: device) {
            if let shipment = self.devices.shipments.remove(cargo, of: device) { self.emit(.device(.stopShipment(shipment.id))) }
            self.cargoFailed(cargo, of: device, error)
        }
    }
}

extension EarshotError {
    /// Returns the error for a status with which a device has refused something.
    fileprivate static func refused(by name: String, _ status: UInt16, hasPIN: Bool) -> Self {
        switch DeviceRefusal(rawValue: status) {
        case .pinRequired where hasPIN: Self(.forbidden, "\(name) says that the PIN is wrong")
        case .pinRequired: Self(.forbidden, "\(name) asks for a PIN; send it again with the PIN")
        case .tooManyPINs: Self(.forbidden, "\(name) accepts no PIN from this machine for a while: too many were wrong")
        case .declined: Self(.declined, "\(name) declined it")
        case .busy: Self(.busy, "\(name) is busy")
        case .tooLarge: Self(.tooLarge, "\(name) says that it is too large")
        case .digestMismatch: Self(.digestMismatch, "\(name) received other bytes than were sent; send it again")
        case .noSpace: Self(.noSpace, "\(name) has no room for it")
        case .invalid, .failed, nil: Self(.unavailable, "\(name) did not take it: status \(status)")
        }
    }
}
