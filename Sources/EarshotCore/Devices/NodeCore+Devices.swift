import EarshotWire
import OrderedCollections

/// LocalSend devices as peers: seen, listed, named, trusted and lost. Their ids come from TLS handshakes. No datagram and no body of a
/// request makes a row.
extension NodeCore {
    mutating func deviceReported(_ event: DeviceEvent) {
        switch event {
        case .announced(let info, let address, let isAnswer): self.deviceAnnounced(info, from: address, isAnswer: isAnswer)
        case .registered(let info, let sender): self.deviceRegistered(info, by: sender)
        case .reached(let address, let result): self.deviceReached(address, result)
        case .reserved(let id, let error): self.deviceSpaceReserved(id, error)
        case .delivered(let id, let outcome): self.deviceTextDelivered(id, outcome)
        case .wanted:
            guard self.settings.devices.isOn, !self.isStopping else { return }
            if let delay = self.devices.announcements.beginWanted(at: self.now.monotonic) { self.set(.deviceAnnouncement, after: delay) }
        case .shipped(let id, let device, let report): self.shipmentReported(id, of: device, report)
        case .linksChanged: self.announceToDevices()
        }
    }

    // MARK: Announcements

    /// Begins a round of announcements.
    mutating func announceToDevices() {
        guard self.settings.devices.isOn, !self.isStopping, let delay = self.devices.announcements.begin() else { return }
        self.set(.deviceAnnouncement, after: delay)
    }

    mutating func sendDeviceAnnouncement() {
        guard self.settings.devices.isOn, !self.isStopping else { return }
        self.emit(.device(.announce))
        if let delay = self.devices.announcements.step() { self.set(.deviceAnnouncement, after: delay) }
    }

    /// Registers with a device that announces itself, within the limits. The announcement itself proves nothing.
    private mutating func deviceAnnounced(_ info: DeviceInfo, from address: PeerAddress, isAnswer: Bool) {
        guard self.settings.devices.isOn, !self.isStopping, info.isEncrypted, let port = info.port else { return }
        let place = PeerAddress(host: address.host, zone: address.zone, port: port)
        guard self.devices.registers.admit(place, at: self.now.monotonic) else { return }
        if !isAnswer { self.devices.announcements.answerIfUnreached(place) }
        self.emit(.device(.register(at: place)))
    }

    /// Records a device that describes itself in a request. A description that claims another certificate is not recorded.
    mutating func deviceRegistered(_ info: DeviceInfo, by sender: DeviceSender) {
        guard self.settings.devices.isOn, let id = sender.id, info.isOf(id) else { return }
        // New certificates cost nothing, and each causes events.
        guard self.devices[id] != nil || self.devices.registers.admitNewcomer(sender.address, at: self.now.monotonic) else { return }
        self.deviceHeard(id, info, at: sender.address)
    }

    private mutating func deviceReached(_ place: PeerAddress, _ result: Result<DeviceAnswer, DeviceFailure>) {
        let isAnnounced = self.devices.announcements.takeUnreached(place)
        guard self.settings.devices.isOn, !self.isStopping else { return }
        switch result {
        case .success(let answer):
            guard answer.info.fingerprint.isEmpty || answer.info.isOf(answer.id) else { return self.devicesSilent(at: place) }
            var info = answer.info
            info.port = place.port
            self.deviceHeard(answer.id, info, at: place, isReached: true)
            for other in self.devices.all where other.place == place && other.id != answer.id { self.deviceLost(other.id) }
        case .failure:
            if isAnnounced { self.emit(.device(.answerByDatagram)) }
            self.devicesSilent(at: place)
        }
    }

    /// Records a sign of life of a device that has shown its certificate.
    mutating func deviceHeard(_ id: PeerID, _ info: DeviceInfo, at address: PeerAddress, isReached: Bool = false) {
        if self.devices[id] == nil {
            if let surplus = self.devices.surplus { self.forgetDevice(surplus) }
            self.devices.add(DeviceRecord(id: id, at: self.now.wall))
        }
        var place: PeerAddress?
        if info.isEncrypted, let port = info.port, EarshotLimits.devicePorts.contains(port) {
            place = PeerAddress(host: address.host, zone: address.zone, port: port)
        }
        let now = self.now
        self.devices[id]?.heard(info, at: place, isReached: isReached, now)
        if self.devices[id]?.noteOnDisk() == true { self.keepPeer(id) }
        self.set(.deviceSilence(id), after: EarshotLimits.deviceSilence)
        self.publishDevice(id)
        self.startShipment(to: id)
    }

    // MARK: Silence

    /// Asks a silent device for a sign of life, at its last place.
    mutating func deviceIsSilent(_ id: PeerID) {
        guard let device = self.devices[id], device.isNearby else { return }
        guard let place = device.place, self.settings.devices.isOn, !self.isStopping else { return self.deviceLost(id) }
        guard self.devices.registers.admit(place, at: self.now.monotonic) else {
            return self.set(.deviceSilence(id), after: EarshotLimits.deviceSilencePause)
        }
        self.emit(.device(.register(at: place)))
    }

    /// Handles a place at which no device has answered: those that were silent for long are lost.
    private mutating func devicesSilent(at place: PeerAddress) {
        for device in self.devices.all where device.place == place {
            let silence = device.lastHeard.map { self.now.monotonic - $0 } ?? EarshotLimits.deviceSilence
            if silence >= EarshotLimits.deviceSilence { self.deviceLost(device.id) }
        }
    }

    mutating func deviceLost(_ id: PeerID) {
        self.deadlines.cancel(.deviceSilence(id))
        self.devices[id]?.lost()
        self.publishDevice(id)
        self.seekDevices()
    }

    // MARK: Rows

    /// Returns a peer of any kind in its public form.
    func shown(_ id: PeerID) -> Peer {
        switch id.kind {
        case .earshot: self.snapshot(self.records[id] ?? PeerRecord(id: id, at: self.now.wall))
        case .localsend: (self.devices[id] ?? DeviceRecord(id: id, at: self.now.wall)).peer
        }
    }

    /// Returns the trust in a peer of any kind.
    func trust(in id: PeerID) -> Trust {
        switch id.kind {
        case .earshot: self.records[id]?.trust ?? .unknown
        case .localsend: self.devices[id]?.trust ?? .unknown
        }
    }

    /// Publishes a device's changes since it was last published. Drops the row of a device that is gone and has no state worth keeping.
    mutating func publishDevice(_ id: PeerID) {
        guard let device = self.devices[id] else { return }
        guard device.isNearby || device.isStored || self.devices.isBusy(id) else { return self.forgetDevice(id) }
        let (before, peer) = (device.published, device.peer)
        guard before.map({ !$0.showsSame(as: peer) }) ?? true else { return }
        self.devices[id]?.publish(peer)
        // A blocked device causes no events, as no blocked peer does.
        guard device.trust != .blocked || before?.trust != .blocked else { return }
        switch (before?.presence, peer.presence) {
        case (.nearby, .away): self.publish(.peerLost(peer))
        case (nil, .nearby), (.away, .nearby): self.publish(.peerFound(peer))
        case (nil, .away), (.nearby, .nearby), (.away, .away): self.publish(.peerChanged(peer))
        }
    }

    private mutating func forgetDevice(_ id: PeerID) {
        guard var device = self.devices.remove(id) else { return }
        for deadline in [Deadline.deviceSilence(id), .trust(id), .deviceRetry(id)] { self.deadlines.cancel(deadline) }
        device.lost()
        if device.published != nil { self.publish(.peerLost(device.peer)) }
    }

    /// Loads a stored device.
    mutating func load(device stored: StoredPeer) {
        var device = DeviceRecord(stored)
        device.publish(device.peer)
        self.devices.add(device)
    }

    // MARK: Names

    /// Returns the device that a user means by a name that no Earshot peer has: by its alias, the beginning of its id, or its own name.
    func resolveDevice(_ name: String) throws(EarshotError) -> PeerID? {
        let entries = self.devices.all.map(\.namingEntry)
        if let named = entries.first(where: { $0.alias == name }) { return named.id }
        var matches: [PeerNaming.Entry] = []
        if let prefix = PeerNaming.idPrefix(name, of: .localsend) {
            matches = entries.filter { $0.id.description.utf8.starts(with: prefix) }
        }
        if matches.isEmpty {
            let named = entries.filter { $0.name == name }
            let allowed = named.filter { $0.trust != .blocked }
            matches = allowed.isEmpty ? named : allowed
        }
        guard matches.count <= 1 else { throw .ambiguous(name, matches.map { ($0.id, $0.name) }) }
        return matches.first?.id
    }

    /// Returns the Earshot peer that a user means, for a request that no LocalSend device understands.
    /// - Throws: as ``resolve(_:)``; `unsupported` for a device.
    func resolvePeer(_ name: String) throws(EarshotError) -> PeerID {
        let id = try self.resolve(name)
        guard id.kind == .earshot else {
            throw EarshotError(.unsupported, "\(self.shown(id).name) is a LocalSend device, which takes only messages and files")
        }
        return id
    }

    // MARK: Decisions

    /// Returns the row that a user's decision about trust in a device stores.
    func deviceRow(_ request: TrustRequest, _ caller: Decision.Caller) throws(EarshotError) -> StoredPeer {
        var row = try self.deviceRow(request.peer, named: request.name)
        if case .offer(let invitation, _) = caller {
            // The offer was accepted first. Meanwhile, a user may have blocked the device, or the device may be gone with its row.
            guard row.trust != .blocked else { throw .blocked(invitation.peerName) }
            if self.devices[request.peer] == nil { row.name = invitation.peerName }
        }
        row.trust = request.trust
        row.trustedUntil = request.until
        return row
    }

    /// Returns the row that a user's decision about an alias of a device stores.
    func deviceRow(_ id: PeerID, called alias: DisplayName?, named name: String) throws(EarshotError) -> StoredPeer {
        var row = try self.deviceRow(id, named: name)
        if let alias {
            let lowercased = alias.description.lowercased()
            let isTaken =
                !self.names.bearers(of: lowercased).isEmpty
                || self.devices.all.contains { $0.id != id && $0.isStored && $0.name.lowercased() == lowercased }
            if isTaken { throw EarshotError(.conflict, "another peer is already called \"\(alias)\"") }
        }
        row.alias = alias
        return row
    }

    private func deviceRow(_ id: PeerID, named name: String) throws(EarshotError) -> StoredPeer {
        let record = self.devices[id] ?? DeviceRecord(id: id, at: self.now.wall)
        guard PeerID(name) != nil || record.row.isProven else {
            throw EarshotError(.invalidParameter, "\"\(name)\" has not shown its certificate yet; name it by its full id, \(id)")
        }
        return record.row
    }

    /// Applies a decision about a device after it was written.
    mutating func adopt(device stored: StoredPeer) {
        let id = stored.id
        if self.devices[id] == nil { self.devices.add(DeviceRecord(stored)) }
        let before = self.devices[id]?.trust ?? .unknown
        self.devices[id]?.standing.keep(stored)
        self.log(
            Notice(
                .info, "a user has decided about a device",
                ["peer": id, "name": stored.name, "trust": stored.trust.rawValue, "before": before.rawValue]))
        self.scheduleDeviceTrustExpiry(id)
        switch stored.trust {
        case .trusted: self.strangers.invitations.places.release(id)
        case .blocked:
            self.declineOffers(of: id)
            self.endDeviceSessions(of: id)
            self.failShipments(to: id, .blocked(stored.name))
        case .unknown: break
        }
        self.publishDevice(id)
    }

    mutating func expireDeviceTrust(_ id: PeerID) {
        guard self.devices[id]?.standing.expire(at: self.now.wall) == true else { return self.scheduleDeviceTrustExpiry(id) }
        self.log(Notice(.notice, "trust has ended", ["peer": id, "name": self.devices[id]?.name ?? ""]))
        self.keepPeer(id)
        self.publishDevice(id)
    }

    private mutating func scheduleDeviceTrustExpiry(_ id: PeerID) {
        self.deadlines.cancel(.trust(id))
        guard let end = self.devices[id]?.standing.nextEnd else { return }
        let left = max(.zero, end - self.now.wall) + .milliseconds(1)
        self.set(.trust(id), after: min(left, EarshotLimits.trustCheck))
    }

    // MARK: Settings

    /// Applies changed settings: devices go when LocalSend is switched off, and are looked for when it is switched on.
    mutating func deviceSettingsChanged(from old: DeviceSettings) {
        guard self.settings.devices.isOn != old.isOn else { return }
        guard !self.settings.devices.isOn else {
            self.announceToDevices()
            return self.seekDevices()
        }
        let error = EarshotError(.cancelled, "LocalSend was switched off")
        for id in self.devices.offers.keys { self.resolveInvitation(id, .cancelled, error) }
        for id in self.devices.sessions.keys { self.endDeviceSession(id, error) }
        self.interruptShipments("LocalSend was switched off")
        for device in self.devices.all { self.deviceLost(device.id) }
    }
}

extension DeviceInfo {
    /// Whether the description claims the certificate that the id proves.
    fileprivate func isOf(_ id: PeerID) -> Bool { self.fingerprint.uppercased() == id.fingerprint }
}
