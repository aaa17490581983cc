import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The invariants of LocalSend devices.
extension World {
    // MARK: Effects

    /// Whether the sender was blocked before this input, and still is.
    private func isBlockedDevice(_ id: PeerID?, by machine: Int) -> Bool {
        guard let id, self.machines[machine].blocked.contains(id) else { return false }
        return self.trust(in: id, at: machine) == .blocked
    }

    func trust(in id: PeerID, at machine: Int) -> Trust {
        guard id.kind == .localsend else { return self.machines[machine].core?.facts(of: id)?.trust ?? .unknown }
        return (try? self.machines[machine].core?.peer(id.description))?.trust ?? .unknown
    }

    mutating func check(_ effect: DeviceEffect, of machine: Int) {
        switch effect {
        case .stopShipment(let id): self.checkStop(id, of: machine)
        case .announce, .answerByDatagram:
            if !self.machines[machine].settings.devices.isOn { self.fail(.devices, "\(machine) speaks to devices with LocalSend off") }
        case .register(let place): self.checkRegister(at: place, from: machine)
        case .reserve(let id, _, _), .deliver(let id, _): self.checkAcceptance(of: id, at: machine)
        case .release(let ids):
            if let id = ids.first(where: { !self.machines[machine].devices.reserved.contains($0) }) {
                self.fail(.devices, "\(machine) releases the space of \(id), which is not reserved")
            }
        case .ship(_, let shipment, let target, _):
            if self.isBlockedDevice(target.id, by: machine) { self.fail(.blocked, "\(machine) sends a blocked device something") }
            self.checkShipment(shipment, to: target, of: machine)
        case .cancel(_, let target):
            if self.isBlockedDevice(target.id, by: machine) { self.fail(.blocked, "\(machine) sends a blocked device something") }
        }
    }

    /// Checks the limits on requests that follow no decision.
    private mutating func checkRegister(at place: PeerAddress, from machine: Int) {
        let now = self.clock.now
        let settings = self.machines[machine].settings.devices
        self.machines[machine].devices.registers.removeAll { now - $0.at >= EarshotLimits.deviceRegisterPeriod }
        let recent = self.machines[machine].devices.registers
        let isEarly = recent.contains { $0.host == place.host && now - $0.at < EarshotLimits.deviceRegisterInterval }
        if !settings.isOn || isEarly || recent.count >= EarshotLimits.deviceRegisters || place.port < 1024 {
            self.fail(.limits, "\(machine) asks \(place) who it is, after \(recent.count) others")
        }
        self.machines[machine].devices.registers.append((place.host, now))
    }

    /// Checks that an offer is accepted by a user, or by the settings.
    private mutating func checkAcceptance(of id: InvitationID, at machine: Int) {
        guard let peer = try? self.machines[machine].core?.invitation(id).peerID else { return }
        let policy = self.machines[machine].settings.policy
        let isByPolicy: Bool =
            switch self.trust(in: peer, at: machine) {
            case .trusted: policy.fromTrusted == .accept
            case .unknown: policy.fromUnknown == .accept && !policy.pairedOnly
            case .blocked: false
            }
        if self.isBlockedDevice(peer, by: machine) { self.fail(.blocked, "\(machine) accepts an offer of a blocked device") }
        guard isByPolicy || self.machines[machine].devices.accepted.contains(id) else {
            return self.fail(.devices, "\(machine) accepts \(id), which neither a user nor the settings have accepted")
        }
        self.machines[machine].devices.justified.append(id)
    }

    /// Checks that an upload comes from the sender of the accepted offer, with its token, and once.
    mutating func checkUpload(_ row: Resource, _ call: CallID, of machine: Int) {
        let own = self.machines[machine]
        guard case .device(.upload(let upload, let sender))? = own.calls.first(where: { $0.id == call })?.command,
            let body = own.devices.bodies[call],
            let session = self.devices.sessions.first(where: { $0.id == upload.session && $0.machine == machine && $0.run == own.run }),
            let number = session.files.firstIndex(where: { $0.id == upload.file }), session.tokens[number].token == upload.token,
            session.sender.id == sender.id, session.sender.address.host == sender.address.host
        else { return self.fail(.devices, "\(machine) receives \(row.id) without a right to it") }
        if session.done.contains(upload.file) { self.fail(.devices, "\(machine) receives \(upload) again") }
        if self.isBlockedDevice(sender.id, by: machine) { self.fail(.blocked, "\(machine) receives a file of a blocked device") }
        own.devices.uploads[call] = row.id
        self.devices.uploads[row.id] = Devices.Upload(
            session: session.id, file: session.files[number], content: body.content, isWhole: body.end == .ends)
    }

    /// Notes the invitation of an offer, and checks that no device is in a session.
    mutating func note(_ invitation: Invitation, of machine: Int, _ input: Input) {
        if case .call(let call, .device(.offer)) = input, invitation.state == .pending {
            self.machines[machine].devices.offers[call] = invitation.id
        }
        if invitation.peerID.kind == .localsend, invitation.sessionID != nil || invitation.offer == nil {
            self.fail(.devices, "\(machine) is in a session with a device: \(invitation)")
        }
    }

    // MARK: Answers to devices

    mutating func check(_ answer: Answer, to command: DeviceCommand, _ call: CallID, since: Instant, of machine: Int) {
        let own = self.machines[machine]
        switch (command, answer) {
        case (.checkPIN(let pin, let sender, let origin), _): self.checkPIN(pin, sender, origin, answer, call, of: machine)
        case (.offer(let offer, let sender, _), .deviceOffer(let accepted)):
            guard let id = own.devices.offers[call], own.devices.justified.contains(id), !self.isBlockedDevice(sender.id, by: machine)
            else {
                return self.fail(.devices, "\(machine) grants \(offer.files.count) files without a decision")
            }
            self.granted(offer, sender, accepted, call, by: machine)
        case (.offer(_, let sender, _), .deviceRefusal(let refusal)):
            if own.devices.offers[call] == nil, refusal == .declined { self.counts[.devicesHidden] += 1 }
            guard self.isBlockedDevice(sender.id, by: machine), refusal == .declined, !own.devices.gone.contains(call) else { return }
            // Further ones than may wait are refused at once.
            let mayWait = (own.core?.figures.lateDeviceRefusals ?? 0) < EarshotLimits.lateDeviceRefusals
            if mayWait, self.clock.now - since < .milliseconds(EarshotLimits.blockedAnswerMilliseconds.lowerBound) {
                self.fail(.blocked, "\(machine) refuses a blocked device's offer at once")
            }
        case (.upload(let upload, _), .done):
            self.counts[.deviceFiles] += 1
            guard let id = own.devices.uploads[call], let content = own.shelf.received[id], self.devices.uploads[id]?.isRight == true,
                own.shelf.rows[id]?.state == .completed, content == self.devices.uploads[id]?.content || content.count == 0
            else { return self.fail(.committed, "\(machine) answers that \(upload.file) is received, which is not on disk") }
            self.devices.uploads[id]?.isAnswered = true
            if let index = self.devices.sessions.firstIndex(where: { $0.id == upload.session }),
                !self.devices.sessions[index].done.append(upload.file).inserted
            {
                self.fail(.devices, "\(machine) receives \(upload.file) twice")
            }
        case (.upload, .deviceRefusal):
            self.counts[.deviceUploadsRefused] += 1
            // A block, or the end of LocalSend, may refuse a file that is being put in its place.
            guard let id = own.devices.uploads[call], own.shelf.complete[id] == nil, own.shelf.placed[id] == nil else { return }
            self.devices.uploads[id]?.isRefused = true
        case (.cancel, .done): break
        default: self.fail(.answers, "\(machine) answers \(command) with \(answer)")
        }
    }

    private mutating func granted(
        _ offer: DeviceOffer, _ sender: DeviceSender, _ answer: DeviceOfferAnswer, _ call: CallID, by machine: Int
    ) {
        self.counts[.deviceOffers] += 1
        let run = self.machines[machine].run
        switch answer {
        case .nothingToSend:
            self.counts[.deviceTexts] += 1
            let text = offer.files[0].preview ?? ""
            self.devices.texts.append((machine, text))
            if self.count(of: text, at: machine) != 1 { self.fail(.committed, "\(machine) answers that \(text) is received, which is not") }
        case .upload(let session, let tokens):
            let stamps = self.devices.offered[[UInt64(machine), UInt64(run), call.number]] ?? []
            guard tokens.map(\.file) == offer.files.map(\.id), stamps.count == tokens.count, Set(tokens.map(\.token)).count == tokens.count
            else { return self.fail(.devices, "\(machine) grants \(tokens.count) of \(offer.files.count) files") }
            self.devices.sessions.append(
                Devices.Session(
                    machine: machine, run: run, id: session, sender: sender, files: offer.files, tokens: tokens, stamps: stamps))
        }
    }

    /// Returns the number of times that the inbox holds a text.
    private func count(of text: String, at machine: Int) -> Int {
        self.machines[machine].mailbox.inbox.values.count { $0.body.readableBytesView.elementsEqual(text.utf8) }
    }

    private mutating func checkPIN(
        _ pin: String?, _ sender: DeviceSender, _ origin: [UInt8], _ answer: Answer, _ call: CallID, of machine: Int
    ) {
        let own = self.machines[machine]
        let secret = own.settings.devices.pin
        let isFree = secret == nil || sender.id.map { self.trust(in: $0, at: machine) == .trusted } == true
        let isLocked = own.devices.isLocked(origin, at: self.clock.now)
        switch answer {
        case .done:
            own.devices.lastPass = call
            guard !isFree else { return }
            if isLocked || pin != secret { self.fail(.devices, "\(machine) takes the PIN \(pin ?? "none") of \(sender)") }
            for index in own.devices.wrongPINs.indices where own.devices.wrongPINs[index].origin == origin {
                own.devices.wrongPINs[index].origin = []
            }
        case .deviceRefusal(.pinRequired) where !isFree && !isLocked:
            self.counts[.devicePINs] += 1
            if pin != nil { own.devices.wrongPINs.append((origin, self.clock.now)) }
        case .deviceRefusal(.tooManyPINs) where !isFree && isLocked: break
        default: self.fail(.devices, "\(machine) answers \(answer) to a PIN, free: \(isFree), locked: \(isLocked)")
        }
    }

    // MARK: State

    /// Checks that a device's refused offer or upload has changed nothing. An offer is still a sign of life of its sender.
    mutating func checkRefusal(_ command: DeviceCommand, _ before: NodeCore, _ after: NodeCore, of machine: Int) {
        let (old, new) = (before.figures, after.figures)
        let isSame: Bool =
            switch command {
            case .offer: old.deviceOffers == new.deviceOffers && old.pendingInvitations == new.pendingInvitations
            case .upload: old == new && before.showsSame(as: after)
            // A check may end expired trust.
            case .checkPIN, .cancel: true
            }
        if !isSame { self.fail(.unchanged, "\(machine) has refused \(command), and has changed") }
    }

    mutating func checkDevices(of machine: Int, _ core: NodeCore, _ input: Input) {
        guard self.schedule.devices > 0 else { return }
        let (own, figures) = (self.machines[machine].devices, core.figures)
        if figures.deviceOffers + figures.deviceSessions == 0, own.reserving == 0, !own.reserved.isEmpty,
            !self.machines[machine].isStopping,
            self.machines[machine].transfers.movers.isEmpty
        {
            self.fail(.devices, "\(machine) keeps space for \(own.reserved.count) files that nobody sends")
        }
        self.checkAttempts(of: machine, core)
        guard Self.isOfDevices(input) else { return }
        for peer in core.peers where peer.id.kind == .localsend {
            if !own.proven.contains(peer.id), self.machines[machine].disk.peers[peer.id] == nil, !self.isWritten(peer.id, core) {
                self.fail(.devices, "\(machine) lists \(peer.id), which has shown no certificate")
            }
        }
        if let session = core.sessions.first(where: { $0.members.contains { $0.peerID.kind == .localsend } }) {
            self.fail(.devices, "\(machine) is in a session with a device: \(session)")
        }
    }

    private func isWritten(_ id: PeerID, _ core: NodeCore) -> Bool { core.keptPeers.contains { $0.id == id } }

    private static func isOfDevices(_ input: Input) -> Bool {
        switch input {
        case .device, .call(_, .device), .start, .committed: true
        default: false
        }
    }

    func deviceLimits(of machine: Int, _ figures: NodeCore.Figures) -> [(String, Int, Int)] {
        let calls = self.machines[machine].calls.count
        // Offers that wait already may be accepted, and two certificates of each device may be trusted.
        let trusted = 2 * self.schedule.devices * EarshotLimits.deviceSessions
        let devicesInSessions = EarshotLimits.allDeviceSessions + EarshotLimits.pendingInvitations + trusted
        return [
            ("devices that were only seen", figures.seenDevices, EarshotLimits.seenDevices + figures.deviceOffers + figures.deviceSessions),
            ("offers of one device", figures.mostDeviceOffers, 1),
            ("strangers' offers that wait", figures.strangersOffers, EarshotLimits.pendingInvitations + 2 * self.schedule.devices),
            ("bytes of offers", figures.deviceOfferBytes, 2 * EarshotLimits.pendingDeviceOfferBytes),
            ("sessions of one device", figures.mostDeviceSessions, EarshotLimits.deviceSessions),
            ("sessions of devices", figures.deviceSessions, devicesInSessions),
            ("uploads of one session", figures.mostDeviceUploads, EarshotLimits.deviceUploads),
            ("offers and late refusals of devices", figures.deviceOffers + figures.lateDeviceRefusals, calls),
            ("late refusals of devices", figures.lateDeviceRefusals, EarshotLimits.lateDeviceRefusals),
            ("reservations for ended offers", figures.abandonedDeviceOffers, self.machines[machine].devices.reserving),
            ("wrong PINs", figures.wrongPINs, EarshotLimits.devicePINs),
            ("things for devices that are over", figures.endedShipments, 0),
            ("places that are asked", figures.unreachedDevices, 2 * EarshotLimits.deviceRegisters),
        ]
    }

    /// Checks what is left of the files and texts of devices, on a disk that has seen restarts.
    mutating func checkDevicesAtEnd(of machine: Int, _ core: NodeCore) {
        self.checkShipmentsAtEnd(of: machine, core)
        let shelf = self.machines[machine].shelf
        var received: OrderedSet<[String]> = []
        for row in shelf.rows.values where row.peerID.kind == .localsend && row.direction == .incoming {
            guard row.state == .completed else { continue }
            guard let upload = self.devices.uploads[row.id], upload.isRight, !upload.isRefused else {
                return self.fail(.devices, "\(machine) lists \(row.id) as received, which is not")
            }
            if !received.append([upload.session, upload.file.id]).inserted {
                return self.fail(.devices, "\(machine) lists \(upload.file.id) of \(upload.session) twice")
            }
        }
        for (id, upload) in self.devices.uploads where upload.isAnswered && !self.devices.removed.contains(id) {
            guard let session = self.devices.sessions.first(where: { $0.id == upload.session }), session.machine == machine else {
                continue
            }
            guard let row = shelf.rows[id], row.state == .completed, row.inSpool ? shelf.complete[id] != nil : shelf.placed[id] != nil
            else {
                return self.fail(.committed, "\(machine) has answered that \(id) is received, which is not on disk")
            }
        }
        for (receiver, text) in self.devices.texts where receiver == machine && self.count(of: text, at: machine) != 1 {
            return self.fail(.committed, "\(machine) has the text \(text) \(self.count(of: text, at: machine)) times")
        }
    }
}
