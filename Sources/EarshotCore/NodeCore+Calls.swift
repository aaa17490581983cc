package import EarshotWire
import OrderedCollections

/// Requests of users and programs, and the answers to them.
extension NodeCore {
    mutating func take(_ command: Command, _ call: CallID) {
        switch command {
        case .invite(let name, let context, let timeout): self.invite(name, context: context, timeout: timeout, call)
        case .withdraw(let id): self.withdraw(id, call)
        case .respond(let id, let decision, let always): self.respond(to: id, decision, always: always, call)
        case .awaitInvitation(let id): self.awaitInvitation(id, call)
        case .setTrust(let trust, let name, let until): self.setTrust(trust, name, until: until, call)
        case .setAlias(let alias, let name): self.setAlias(alias, name, call)
        case .send(let drafts, let room): self.send(drafts, room: room, call)
        case .cancelQueued(let id): self.cancelQueued(id, call)
        case .leave(let session):
            guard !self.isStopping else { return self.answer(call, .failure(.stopping)) }
            self.leave(session, call)
        case .verify(let name, let timeout): self.verify(name, timeout: timeout, call)
        case .endVerification(let name, let mismatch): self.endVerification(name, mismatch: mismatch, call)
        case .stream(let request): self.take(request, call)
        case .resource(let request): self.take(request, call)
        case .group(let request): self.take(request, call)
        case .device(let command): self.take(command, call)
        }
    }

    mutating func answer(_ call: CallID, _ answer: Answer) { self.emit(.answer(call, answer)) }

    mutating func answer(_ caller: Decision.Caller, _ decision: Decision, _ result: Result<DecisionOutcome, EarshotError>) {
        guard case .trust(let request, _) = decision else { return }
        switch (caller, result) {
        case (.peer(let call), .failure(let error)): self.answer(call, .failure(error))
        case (.peer(let call), .success):
            self.answer(call, .peer(self.shown(request.peer)))
        case (.invitation(let id, let call), .failure(let error)):
            self.invitations.setDeciding(id, false)
            self.answer(call, .failure(error))
        case (.invitation(let id, let call), .success):
            self.invitations.setDeciding(id, false)
            guard let invitation = self.invitations[id]?.invitation else {
                return self.answer(call, .failure(EarshotError(.notFound, "there is no invitation \(id)")))
            }
            self.answer(call, .invitation(invitation))
        case (.offer(let invitation, let call), .failure(let error)):
            let words = "the offer of \(invitation.peerName) was accepted, but the device is not trusted: \(error.message)"
            self.answer(call, .failure(EarshotError(error.code, words, underlying: error, remedy: error.remedy ?? .trust)))
        case (.offer(let invitation, let call), .success): self.answer(call, .invitation(invitation))
        }
    }

    /// Answers the calls that still wait, because no decision follows: a call that waits for an invitation gets its present state.
    mutating func dismissCallers() {
        self.dismissSenders()
        self.dismissDevices()
        for call in self.groups.signatures.dismiss() + self.groups.all.flatMap(\.joiners) { self.answer(call, .failure(.stopping)) }
        for (call, invitation) in self.invitations.dismissWaiters() { self.answer(call, .invitation(invitation)) }
    }

    // MARK: Queries

    /// Every listed peer, in the order in which they came.
    package var peers: [Peer] {
        self.records.values.filter(\.presence.isAnnounced).map(self.snapshot) + self.devices.all.map(\.peer)
    }

    /// - Throws: as ``resolve(_:)``, and `unknown-peer` for a full id that was never seen.
    package func peer(_ name: String) throws(EarshotError) -> Peer {
        let id = try self.resolve(name)
        if id.kind == .localsend {
            guard let device = self.devices[id] else { throw .unknown(name) }
            return device.peer
        }
        guard let record = self.records[id] else { throw .unknown(name) }
        return self.snapshot(record)
    }

    /// Every session, whether its member is connected or not.
    package var sessions: [Session] {
        self.records.values.compactMap { record in record.session.session.map(record.session) }
    }

    /// The facts that other parts of the node may know of every peer, in the order in which they came.
    package var allFacts: [PeerFacts] { self.records.values.map(\.facts) }

    /// Returns the pending invitations, or all if `all`, in the order in which they were made.
    package func invitations(all: Bool) -> [Invitation] { self.invitations.list(all: all) }

    /// - Throws: `not-found`.
    package func invitation(_ id: InvitationID) throws(EarshotError) -> Invitation {
        guard let entry = self.invitations[id] else { throw EarshotError(.notFound, "there is no invitation \(id)") }
        return entry.invitation
    }

    /// Returns a message that this machine is sending, or has sent recently.
    package func outgoingMessage(_ id: MessageID) -> OutgoingMessage? { self.outgoing.find(id) }

    /// The number of messages that are not acknowledged yet, over all peers, and the number of their bytes in flight.
    package var unacknowledged: (messages: Int, bytes: Int) {
        self.traffic.values.reduce((0, 0)) { ($0.0 + $1.outbox.count, $0.1 + $1.outbox.bytes) }
    }

    /// Returns the reason why a peer could not be reached.
    package func failure(of peer: PeerID) -> Peer.Failure? { self.records[peer]?.failure }

    /// Returns the addresses at which a peer may be dialled for data: where discovery sees it, and where the last dial succeeded.
    package func places(of peer: PeerID) -> (seen: [SightedAddress], lastGood: PeerAddress?) {
        guard let record = self.records[peer] else { return ([], nil) }
        return (record.presence.sightedAddresses, record.reach.lastGoodAddress)
    }

    /// The connections that can be closed without a loss to session members, so that these peers learn this side's new name at once. Other
    /// peers learn it with their next connection: a name is proven when a connection is made, and not sent again on it.
    package var renewableLinks: [LinkID] {
        let idle = self.records.values.filter { record in
            record.isAttached && record.comparing.shown == nil && self.streams.count(of: record.id, .open) == 0
                && self.transfers.count(of: record.id, .open) == 0
        }
        return idle.compactMap(\.connection)
    }

    /// The addresses at which other machines advertise this node's peer id.
    package var identityCopyAddresses: [PeerAddress] { self.identityCopies.addresses }

    /// The state of discovery, and the name under which this machine is advertised.
    package var discovery: (status: DiscoveryStatus, instanceName: String?) { (self.discovered.status, self.discovered.instanceName) }

    /// The numbers of peers, sessions, connections, pending invitations and open transfers.
    package var counts: (peers: Int, sessions: Int, connections: Int, pendingInvitations: Int, transfers: Int) {
        (
            self.records.values.count(where: \.presence.isAnnounced) + self.devices.count,
            self.records.values.count { $0.sessionID != nil },
            self.records.values.count { $0.connection != nil }, self.invitations.pendingCount, self.transfers.count(.open)
        )
    }

    // MARK: Start

    /// Loads the stored state, before anything else.
    package mutating func load(_ peers: [StoredPeer], _ sessions: [StoredSession], _ groups: [StoredGroup] = []) {
        for peer in peers {
            guard peer.id.kind == .earshot else {
                self.load(device: peer)
                continue
            }
            self.records.add(PeerRecord(peer), for: peer.id)
            if peer.isTLSPinned { self.pins.apply(.keep, to: peer.id) }
        }
        for session in sessions {
            for member in session.members where member != self.id {
                self.makeRecord(member, at: session.createdAt)
                self.records[member]?.session.load(session)
                self.records[member]?.presence.announce()
            }
        }
        for group in groups {
            guard let records = GroupRecords(group) else { continue }
            self.groups.load(HeldGroup(records: records, stage: group.isOver ? .over : .joined))
            if !group.isOver { self.loadTies(records) }
        }
        for record in self.records.values where record.standing.stored != nil { _ = self.names.add(record.id, named: record.name) }
    }

    mutating func start() {
        self.useConfiguredPeers(self.settings.configuredPeers)
        for group in self.groups.all where group.isJoined { self.resumeGroup(group.id) }
        for id in self.records.keys {
            self.expireTrust(id)
            self.ensureConnection(id)
        }
        self.expireMessages()
        self.offerReach()
        self.beginTransfers()
        for device in self.devices.all { self.expireDeviceTrust(device.id) }
        self.announceToDevices()
        self.seekDevices()
    }

    mutating func settingsChanged(from old: CoreSettings) {
        if self.settings.encryption != old.encryption { self.closeDisagreeingLinks() }
        self.useConfiguredPeers(self.settings.configuredPeers)
        if (self.settings.sendLimit, self.settings.receiveLimit) != (old.sendLimit, old.receiveLimit) {
            self.paceTransfers(afterSettings: true)
        }
        self.deviceSettingsChanged(from: old.devices)
    }
}
