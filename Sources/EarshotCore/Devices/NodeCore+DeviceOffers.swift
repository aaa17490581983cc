import EarshotWire
import NIOCore
import OrderedCollections

/// Devices' offers: checked, decided by the settings or a user as invitations are, and accepted with their space reserved. An offer never
/// becomes a session between peers.
extension NodeCore {
    mutating func take(_ command: DeviceCommand, _ call: CallID) {
        switch command {
        case .checkPIN(let pin, let sender, let origin): self.checkPIN(pin, of: sender, from: origin, call)
        case .offer(let offer, let sender, let origin):
            do throws(DeviceRefusal) {
                try self.deviceOffered(offer, by: sender, from: origin, call)
            } catch {
                self.refuse(call, error)
            }
        case .upload(let upload, let sender):
            do throws(DeviceRefusal) {
                try self.deviceUploads(upload, by: sender, call)
            } catch {
                self.refuse(call, error)
            }
        case .cancel(let session, let sender):
            self.deviceCancels(session, sender)
            self.answer(call, .done)
        }
    }

    mutating func refuse(_ call: CallID, _ refusal: DeviceRefusal) { self.answer(call, .deviceRefusal(refusal)) }

    // MARK: PIN

    private mutating func checkPIN(_ pin: String?, of sender: DeviceSender, from origin: [UInt8], _ call: CallID) {
        guard let secret = self.settings.devices.pin, !self.isTrustedDevice(sender.id) else { return self.answer(call, .done) }
        let now = self.now.monotonic
        guard !self.devices.pins.isLocked(origin, at: now) else { return self.refuse(call, .tooManyPINs) }
        guard let pin else { return self.refuse(call, .pinRequired) }
        guard areEqual(secret: secret, pin) else {
            self.devices.pins.note(origin, at: now)
            self.log(Notice(.info, "a device gave a wrong PIN", ["address": sender.address.host]))
            return self.refuse(call, .pinRequired)
        }
        self.devices.pins.right(origin)
        self.answer(call, .done)
    }

    /// Whether a device is trusted now. Trust that has expired ends first.
    mutating func isTrustedDevice(_ id: PeerID?) -> Bool {
        guard let id else { return false }
        self.expireDeviceTrust(id)
        return self.devices[id]?.trust == .trusted
    }

    // MARK: Offers

    private mutating func deviceOffered(
        _ offer: DeviceOffer, by sender: DeviceSender, from origin: [UInt8], _ call: CallID
    ) throws(DeviceRefusal) {
        guard !self.isStopping, self.settings.devices.isOn else { throw .failed }
        let files = try self.checked(offer)
        let text = files.count == 1 && files[0].file.isText ? files[0].file.preview : nil
        if let text, text.utf8.count > EarshotLimits.devicePreviewBytes { throw .tooLarge }
        let isTrusted = self.isTrustedDevice(sender.id)
        let id: InvitationID = self.fresh()
        let place = sender.id ?? PeerID(placeOf: id)
        guard self.mayOffer(sender, isTrusted: isTrusted, place, from: origin) else { throw .busy }
        self.deviceRegistered(offer.info, by: sender)
        let policy = self.devicePolicy(of: sender.id).invitation()
        guard policy.outcome != .hide else { return self.refuseLater(call) }
        let pending = PendingOffer(
            call: call, sender: sender, place: place, files: files, text: text, port: offer.info.port,
            cost: files.reduce(0) { $0 + $1.file.cost })
        if policy.outcome == .ask, !isTrusted {
            guard self.devices.offerBytes + pending.cost <= EarshotLimits.pendingDeviceOfferBytes else { throw .busy }
            guard self.hasRoom(forOfferOf: place, from: origin) else { throw .busy }
        }
        let invitation = self.invitation(id, for: pending, named: offer.info.alias)
        self.devices.add(pending, as: id)
        self.invitations.add(invitation)
        self.set(.invitation(id), after: self.settings.devices.offerTime)
        self.publish(.invitationReceived(invitation))
        self.log(
            Notice(
                .info, "a device offers files",
                [
                    "peer": invitation.peerID, "name": invitation.peerName, "invitation": id, "files": files.count,
                    "decision": policy.outcome.shown.rawValue, "rule": policy.rule,
                ]))
        switch policy.outcome {
        case .ask, .hide: break
        case .reject: self.resolveInvitation(id, .declined)
        case .accept: self.acceptOffer(id, for: nil)
        }
    }

    /// Returns the files of an offer with their checked names.
    private mutating func checked(_ offer: DeviceOffer) throws(DeviceRefusal) -> [OfferedUpload] {
        guard !offer.files.isEmpty else { throw .invalid }
        guard offer.files.count <= EarshotLimits.deviceOfferFiles else { throw .tooLarge }
        var files: [OfferedUpload] = []
        var ids: Set<String> = []
        var total: UInt64 = 0
        for file in offer.files {
            guard !file.id.isEmpty, file.id.utf8.count <= EarshotLimits.deviceFileIDBytes, ids.insert(file.id).inserted,
                let path = OfferedPath(file.name)
            else { throw .invalid }
            let (sum, overflow) = total.addingReportingOverflow(file.size)
            guard !overflow, sum <= WireLimits.resourceSize, file.size <= self.settings.maximumResourceSize ?? .max else { throw .tooLarge }
            total = sum
            files.append(OfferedUpload(file: file, path: path, resource: self.fresh()))
        }
        return files
    }

    /// Whether a sender may have one more offer: one that waits, and few that are under way. A trusted device is not counted with others.
    private mutating func mayOffer(_ sender: DeviceSender, isTrusted: Bool, _ place: PeerID, from origin: [UInt8]) -> Bool {
        if let id = sender.id, self.devices.offers.values.contains(where: { $0.sender.id == id }) { return false }
        // Offers that are accepted become sessions once their space is reserved.
        let accepted = self.devices.offers.values.filter { $0.stage != .asking }
        let own = self.devices.sessions.values.count { $0.sender.isSame(as: sender) } + accepted.count { $0.sender.isSame(as: sender) }
        guard own < EarshotLimits.deviceSessions else { return false }
        guard !isTrusted else { return true }
        guard self.devices.sessions.count + accepted.count < EarshotLimits.allDeviceSessions else { return false }
        return self.strangers.invitations.rate.admit(place, from: origin, at: self.now.monotonic)
    }

    /// Whether a stranger's offer may wait for a user. It may evict another stranger's request.
    private mutating func hasRoom(forOfferOf place: PeerID, from origin: [UInt8]) -> Bool {
        switch self.strangers.invitations.places.admit(place, from: origin) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, let hadGone):
            self.displaceInvitation(at: other, hadGone: hadGone)
            return true
        }
    }

    private func invitation(_ id: InvitationID, for offer: PendingOffer, named alias: String) -> Invitation {
        let name = offer.sender.id.flatMap { self.devices[$0]?.name } ?? alias
        return Invitation(
            id: id, direction: .incoming, peerID: offer.sender.id ?? .unprovenDevice, peerName: name, context: [], state: .pending,
            created: self.now.wall, end: self.now.wall + self.settings.devices.offerTime,
            offer: offer.files.map { OfferedFile(name: $0.file.name, size: $0.file.size, contentType: $0.file.shownType) })
    }

    /// Refuses a blocked or hidden device after a while, as a user would.
    private mutating func refuseLater(_ call: CallID) {
        guard self.devices.lateCount < EarshotLimits.lateDeviceRefusals else { return self.refuse(call, .declined) }
        let delay = Int64.random(in: EarshotLimits.blockedAnswerMilliseconds, using: &self.random)
        self.devices.refuseLater(call)
        self.set(.deviceRefusal(call), after: .milliseconds(delay))
    }

    mutating func giveDeviceRefusal(_ call: CallID) { if self.devices.takeLate(call) { self.refuse(call, .declined) } }

    /// Returns the policy engine with the facts about a device.
    func devicePolicy(of id: PeerID?) -> PolicyEngine {
        let standing = id.flatMap { self.devices[$0]?.standing }
        return PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: standing?.trust ?? .unknown, source: standing?.source, trustedUntil: standing?.stored?.trustedUntil, verified: nil,
                hasSession: false, isTLSPinned: false, isInviting: false),
            settings: self.settings.policy)
    }

    // MARK: Accepting

    /// Accepts an offer on behalf of a user, or of the settings. The sender is answered when its text is on disk, or its space reserved. The
    /// user is answered after that, and after the trust is written if the sender is trusted from then on.
    mutating func acceptOffer(_ id: InvitationID, for acceptor: PendingOffer.Acceptor?) {
        guard let offer = self.devices.offers[id], offer.stage == .asking, let invitation = self.invitations[id]?.invitation,
            invitation.state == .pending
        else {
            if let acceptor { self.answer(acceptor.call, .failure(.offerGone)) }
            return
        }
        self.invitations.setDeciding(id, true)
        if let text = offer.text {
            self.devices.accept(id, .delivering, for: acceptor)
            let type = offer.files[0].file.shownType
            let isPlain = !type.contains("/") || type.lowercased() == "text/plain"
            let message = InboxMessage(
                id: self.messageIDs.next(at: self.now.wall, using: &self.random), senderID: invitation.peerID,
                senderName: invitation.peerName, contentType: isPlain ? "text/plain; charset=utf-8" : type,
                body: ByteBuffer(string: text), sent: self.now.wall)
            return self.emit(.device(.deliver(id, message)))
        }
        self.devices.accept(id, .reserving, for: acceptor)
        let kept = self.transfers.count(.kept)
        guard kept + offer.files.count <= EarshotLimits.spooledResources else {
            return self.deviceSpaceReserved(id, EarshotError(.noSpace, "\(kept) received files wait to be fetched already"))
        }
        let needs = offer.files.map { DeviceReservation(id: $0.resource, size: $0.file.size) }
        self.emit(.device(.reserve(id, needs, self.share(of: invitation.peerID, acceptor))))
    }

    /// Returns the share of a sender whose offer is accepted. A sender that is about to be trusted counts as trusted already.
    private func share(of peer: PeerID, _ acceptor: PendingOffer.Acceptor?) -> QuotaShare {
        acceptor?.isAlways == true ? QuotaShare(of: peer, isTrusted: true) : self.share(of: peer)
    }

    /// Begins the session of an accepted offer, once there is space for its files.
    mutating func deviceSpaceReserved(_ id: InvitationID, _ error: EarshotError?) {
        if let resources = self.devices.takeAbandoned(id) {
            // The offer has ended meanwhile.
            if error == nil { self.emit(.device(.release(resources))) }
            return
        }
        self.offerAccepted(id, error)
    }

    /// Answers an accepted text, once it is on disk or the inbox has refused it.
    mutating func deviceTextDelivered(_ id: InvitationID, _ outcome: DeliveryOutcome?) {
        var error: EarshotError?
        switch outcome {
        case .stored(let message)?, .held(let message)?: self.publish(.messagesReceived([message]))
        case .duplicate?, .heldAlready?: break
        case .refused(.inboxFull)?: error = EarshotError(.inboxFull, "the inbox is full")
        case .refused(.storage)?, nil: error = EarshotError(.storage, "the message could not be written")
        }
        self.offerAccepted(id, error)
    }

    /// Answers the sender of an accepted offer, and the user who has accepted it. The trust is written only now, because a call that fails
    /// for lack of space must not leave the sender trusted.
    private mutating func offerAccepted(_ id: InvitationID, _ error: EarshotError?) {
        guard let offer = self.devices.takeOffer(id), let invitation = self.invitations[id]?.invitation else { return }
        self.strangers.invitations.places.release(offer.place)
        let answer: Answer =
            if let error {
                .deviceRefusal(DeviceRefusal(error))
            } else {
                .deviceOffer(offer.text == nil ? self.beginDeviceSession(of: offer, invitation) : .nothingToSend)
            }
        let end = self.resolveInvitation(id, error == nil ? .accepted : .failed, error) ?? invitation
        self.answer(offer.call, answer)
        guard let acceptor = offer.acceptor else { return }
        if let error { return self.answer(acceptor.call, .failure(error)) }
        guard acceptor.isAlways else { return self.answer(acceptor.call, .invitation(end)) }
        let request = TrustRequest(peer: end.peerID, trust: .trusted, until: nil, name: end.peerID.description)
        self.decide(.trust(request, .offer(end, acceptor.call)))
    }

    private mutating func beginDeviceSession(of offer: PendingOffer, _ invitation: Invitation) -> DeviceOfferAnswer {
        let tokens = offer.files.map { _ in (self.fresh() as SessionID).description }
        let share = self.share(of: invitation.peerID, offer.acceptor)
        let session = DeviceSession(id: self.fresh(), offer, invitation, share: share, tokens: tokens, at: self.now.monotonic)
        self.devices.add(session)
        self.set(.deviceSession(session.id), after: EarshotLimits.deviceTokenTime)
        let files = zip(offer.files, tokens).map { DeviceToken(file: $0.file.id, token: $1) }
        return .upload(session: session.id.description, tokens: files)
    }

    // MARK: Ends

    /// Refuses an offer whose invitation has ended without acceptance.
    mutating func offerEnded(_ invitation: Invitation, _ error: EarshotError?) {
        guard let offer = self.devices.removeOffer(invitation.id) else { return }
        self.strangers.invitations.places.release(offer.place)
        if let acceptor = offer.acceptor { self.answer(acceptor.call, .failure(error ?? .offerGone)) }
        self.refuse(
            offer.call, invitation.state == .failed ? error.map { DeviceRefusal($0) } ?? .failed : .declined)
    }

    /// Withdraws the offer of a sender whose connection is lost, and interrupts its upload. Returns whether the call was a device's.
    mutating func deviceGone(_ call: CallID) -> Bool {
        if self.devices.takeLate(call) {
            self.deadlines.cancel(.deviceRefusal(call))
            self.refuse(call, .declined)
            return true
        }
        if let (id, offer) = self.devices.offers.elements.first(where: { $0.value.call == call }) {
            // A text that is being written arrives.
            if offer.stage == .delivering { return true }
            self.resolveInvitation(id, .cancelled, EarshotError(.notConnected, "the sender has closed its connection"))
            return true
        }
        guard let resource = self.devices.upload(for: call) else { return false }
        self.interruptTransfer(resource, .unavailable, "the connection was lost; send it again")
        return true
    }

    /// Ends the offers of a device that is being blocked.
    mutating func declineOffers(of id: PeerID) {
        for (invitation, offer) in self.devices.offers.elements where offer.sender.id == id {
            self.resolveInvitation(invitation, .declined, EarshotError(.cancelled, "a user here has blocked the device"))
        }
    }

    /// Accepts the waiting offer of a device that is trusted now, if the settings say so.
    mutating func acceptWaitingOffer(of id: PeerID) {
        guard self.devicePolicy(of: id).invitation().outcome == .accept else { return }
        for (invitation, offer) in self.devices.offers.elements where offer.sender.id == id && offer.stage == .asking {
            self.acceptOffer(invitation, for: nil)
        }
    }
}

extension PeerID {
    /// Creates the key of the place of a sender without an id, among those of strangers. Each of its offers has a place of its own.
    fileprivate init(placeOf invitation: InvitationID) {
        let bytes = Array("a place\0".utf8) + [UInt8](repeating: 0, count: 8) + invitation.bytes
        self = PeerID(bytes: bytes, kind: .localsend) ?? .unprovenDevice
    }
}

extension DeviceRefusal {
    /// Creates the refusal that tells a sender of an error here.
    init(_ error: EarshotError) {
        self =
            switch error.code {
            case .noSpace, .inboxFull: .noSpace
            case .tooLarge: .tooLarge
            case .digestMismatch: .digestMismatch
            case .busy: .busy
            case .cancelled, .declined, .forbidden, .conflict: .declined
            default: .failed
            }
    }
}

extension EarshotError {
    fileprivate static var offerGone: Self { Self(.conflict, "the offer has ended meanwhile", remedy: .listInvitations) }
}
