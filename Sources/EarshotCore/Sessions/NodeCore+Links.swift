package import EarshotWire
import OrderedCollections

/// Control connections: the choice of a peer's current connection, its frames, and the consequences of its end.
extension NodeCore {
    // MARK: Facts for other parts of the node

    /// Returns the facts about a peer for other parts of the node.
    package func facts(of peer: PeerID) -> PeerFacts? { self.records[peer]?.facts }

    /// Whether a connection is the current one. Frames of a superseded connection are ignored.
    package func isCurrent(_ link: LinkID, of peer: PeerID) -> Bool { self.records[peer]?.connection == link }

    /// Whether it is the connection of a blocked peer, which hears only `declined`.
    package func isMuted(_ link: LinkID) -> Bool { self.links.muted(link) != nil }

    /// Whether it is the current connection of a peer that shares a session with this one, or a group in which both may send.
    package func isMember(_ link: LinkID, _ peer: PeerID) -> Bool {
        guard let record = self.records[peer] else { return false }
        return record.connection == link && (record.sessionID != nil || record.groups.isAttached)
    }

    /// Notes that the peer has sent something that the core does not handle.
    mutating func heard(on link: LinkID) {
        guard let id = self.links.peer(of: link), self.records[id]?.connection == link else { return }
        self.records[id]?.presence.heard(at: self.now.wall)
    }

    /// Handles a frame of a control connection.
    mutating func frameCame(_ frame: Frame, on link: LinkID) {
        if let muted = self.links.muted(link) { return self.frameCame(frame, onMuted: link, muted.facts) }
        // Frames of a superseded connection are ignored.
        guard let id = self.links.peer(of: link), self.records[id]?.connection == link else { return }
        self.records[id]?.presence.heard(at: self.now.wall)
        switch frame {
        case .invite(let invite): self.invitationCame(invite, from: id, on: link)
        case .inviteAnswer(let answer): self.answerCame(answer, from: id)
        case .inviteWithdraw(let withdraw): self.withdrawalCame(withdraw, from: id)
        case .sessionResume(let session): self.sessionNamed(session, by: id)
        case .sessionEnd(let session): self.sessionEndCame(session, from: id)
        case .verification(let verification): self.verificationCame(verification, from: id)
        case .dataTicket(let ticket): self.dataPathChanged(ticket.transfer, .ticket(ticket.token, from: id))
        case .dataUnavailable(let transfer): self.dataPathChanged(transfer, .unavailable(from: id))
        // Frames of a session that has just ended may still be in flight: they are ignored.
        case .messageReceipts(let receipts): if self.isTalking(with: id) { self.receiptsCame(receipts, from: id) }
        case .resource(let frame): self.resourceFrameCame(frame, from: id, on: link)
        case .stream(let frame): self.streamFrameCame(frame, from: id, on: link)
        case .group(let frame): self.groupFrameCame(frame, from: id, on: link)
        // Messages come in batches, as `.messages`.
        case .message, .hello, .proof, .refusal, .ping, .pong, .goodbye, .dataAttach: break
        }
    }

    // MARK: Beginning

    mutating func linkProven(_ link: LinkID, _ facts: LinkFacts, isOtherDead: Bool) {
        let id = facts.peer.id
        self.links.opened(link, by: id)
        // If the preference has changed during the handshake, the next handshake states the new one.
        guard !self.isStopping, self.preferencesYield(facts.peer) else { return self.emit(.close(link, nil)) }
        if facts.protection == .encrypted { self.pins.insert(id) }
        self.makeRecord(id)
        guard let record = self.records[id] else { return }
        let current = LinkState.Current(id: link, facts: facts, provenAt: self.now.monotonic)
        if record.trust == .blocked { return self.mute(current) }
        if let old = record.link.current {
            guard isOtherDead || self.stands(current, against: old) else {
                return self.emit(.close(link, Refusal(code: .superseded, explanation: "another connection stands")))
            }
            self.drop(old, of: id, isBeingReplaced: true)
            self.emit(.close(old.id, Refusal(code: .superseded, explanation: "a newer connection stands")))
        }
        self.stand(current)
    }

    private mutating func stand(_ current: LinkState.Current) {
        let (link, facts) = (current.id, current.facts)
        let id = facts.peer.id
        self.records[id]?.link.stand(current)
        self.records[id]?.presence.heard(at: self.now.wall)
        self.records[id]?.reach.connected(at: facts.dialledAddress)
        self.cancelDial(id)
        self.records[id]?.session.connected()
        self.spread(.connected, of: id)
        self.noteProven(id)
        self.noteName(facts.peer.displayName.description, of: id)
        self.noteTLS(of: id, facts)
        self.vouch(for: id, until: facts.vouchedUntil)
        self.scheduleTrustExpiry(id)
        self.noteConfigured(id, facts)
        if let session = self.records[id]?.sessionID { self.send(.sessionResume(session), on: link) }
        self.nameGroups(to: id)
        self.spread(.withinReach, of: id)
        self.sendInvitation(to: id)
        self.sendGroupInvitation(to: id)
        self.inviterReturned(id)
        self.resumeComparison(id, on: facts)
        self.publishPeer(id)
        self.set(.idle(link), after: EarshotLimits.idleConnectionTime)
        self.closeExcessLinks()
    }

    /// Bounds the connections of strangers: the one that has been unneeded longest is closed first.
    mutating func closeExcessLinks() {
        let connected = self.records.values.filter { $0.connection != nil && !self.isNeeded($0) }.compactMap(\.link.current)
        guard connected.count + self.links.muted.count > EarshotLimits.idleConnections else { return }
        let oldest = (connected + self.links.muted).min { $0.provenAt < $1.provenAt }
        if let oldest { self.emit(.close(oldest.id, nil)) }
    }

    /// Whether a session, an invitation, a comparison or the settings need the peer's connection.
    private func isNeeded(_ record: PeerRecord) -> Bool {
        record.sessionID != nil || !record.reach.configured.isEmpty || record.comparing.state == .waiting
            || record.comparing.state == .requested
            || Direction.allCases.contains { $0.isPending(with: record.id, in: self.invitations) } || !record.groups.isEmpty
    }

    /// Whether a new connection replaces the current one. The newest proven connection wins; if both peers dialled at once, the lower
    /// id's.
    private func stands(_ new: LinkState.Current, against old: LinkState.Current) -> Bool {
        // A TLS connection and a plaintext one were not dialled at once: a preference has changed in between.
        let isSimultaneous =
            new.facts.isInitiator != old.facts.isInitiator && new.facts.protection == old.facts.protection
            && new.provenAt - old.provenAt < EarshotLimits.simultaneousDialTime
        guard isSimultaneous else { return true }
        return new.facts.isInitiator == (self.id < new.facts.peer.id)
    }

    // MARK: Facts to store

    /// Stores that a peer, which had been decided about by its id alone, has connected for the first time.
    private mutating func noteProven(_ id: PeerID) {
        if self.records[id]?.standing.noteProven() == true { self.keepPeer(id) }
    }

    private mutating func noteName(_ name: String, of id: PeerID) {
        guard self.records[id]?.link.rename(name) == true else { return }
        if self.records[id]?.standing.noteName(name) == true { self.keepPeer(id) }
    }

    /// Stores that a known peer has spoken TLS. For strangers that is remembered in memory only.
    private mutating func noteTLS(of id: PeerID, _ facts: LinkFacts) {
        guard facts.protection == .encrypted, self.records[id]?.standing.noteTLS() == true else { return }
        self.pin(id, .keep)
        self.keepPeer(id)
    }

    mutating func pin(_ id: PeerID, _ pin: TLSPin) {
        self.pins.apply(pin, to: id)
        self.emit(.pin(id, pin))
    }

    // MARK: Ending

    mutating func linkClosed(_ link: LinkID, _ end: LinkEnd) {
        self.deadlines.cancel(.idle(link))
        guard let id = self.links.closed(link), let old = self.records[id]?.link.current, old.id == link else { return }
        self.log(Notice(.debug, "a connection ended", ["peer": id, "end": end]))
        self.records[id]?.presence.heard(at: self.now.wall)
        if case .refused(let refusal) = end, refusal.code == .protocolViolation {
            self.spread(.refusedConnection(explanation: refusal.explanation), of: id)
        }
        self.drop(old, of: id, isBeingReplaced: false)
        guard !self.isStopping, let left = self.records[id] else { return }
        // A known peer has the same grace period as one whose advertisement has gone. A stranger is forgotten.
        if left.isKept || !left.groups.isEmpty, left.presence.sightings.isEmpty { self.beginGrace(id) }
        self.publishPeer(id)
        guard let left = self.records[id], left.trust != .blocked else { return }
        // The lower id dials first, so that both seldom dial at once. A superseded side waits for the peer that superseded it.
        var pause: Duration = self.id < id ? .zero : EarshotLimits.higherPeerDialDelay
        if case .refused(let refusal) = end, refusal.code == .superseded { pause = EarshotLimits.supersededDialDelay }
        self.redialConfigured(id, after: pause)
        guard self.isWanted(left) else { return }
        self.cancelDial(id)
        guard pause > .zero else { return self.ensureConnection(id) }
        self.scheduleDial(id, after: pause)
    }

    /// Detaches a peer's connection that no longer stands. Work in flight waits for the next one, or ends.
    private mutating func drop(_ old: LinkState.Current, of id: PeerID, isBeingReplaced: Bool) {
        self.records[id]?.link.drop(isBeingReplaced: isBeingReplaced)
        self.records[id]?.session.detach()
        self.renewTies(with: id)
        self.deadlines.cancel(.idle(old.id))
        self.inviterLeft(id)
        self.spread(.ended(.connection, EarshotError(.unavailable, "the connection was lost")), of: id)
        self.publishSession(with: id)
    }

    /// Closes a connection that neither a session, an invitation, a comparison nor the settings need.
    mutating func closeIfIdle(_ link: LinkID) {
        if self.links.muted(link) != nil {
            guard self.lateAnswers.areDue(on: link) else { return self.emit(.close(link, nil)) }
            return self.set(.idle(link), after: EarshotLimits.blockedConnectionTime)
        }
        guard let record = self.links.peer(of: link).flatMap({ self.records[$0] }), record.connection == link else { return }
        guard self.isNeeded(record) else { return self.emit(.close(link, nil)) }
        self.set(.idle(link), after: EarshotLimits.idleConnectionTime)
    }

    // MARK: Preferences

    /// Whether both preferences, this side's as it is now, allow the transport of a connection.
    private func preferencesYield(_ peer: ProvenPeer) -> Bool {
        TransportKind.agreed(self.settings.encryption, peer.encryption) == peer.transport
    }

    /// Closes the connections whose transport the changed preference no longer allows. Their sessions return over the other transport, or
    /// report why not.
    mutating func closeDisagreeingLinks() {
        for link in self.records.values.compactMap(\.link.current) + self.links.muted
        where !self.preferencesYield(link.facts.peer) || self.mayCarryGroupsOtherwise(link.facts) { self.emit(.close(link.id, nil)) }
    }

    /// Whether an unencrypted connection stands between two members of a group that requires TLS. The peer's preference may have changed
    /// like this machine's, and the next handshake tells.
    private func mayCarryGroupsOtherwise(_ facts: LinkFacts) -> Bool {
        guard facts.protection != .encrypted, self.settings.encryption != .none else { return false }
        return self.records[facts.peer.id]?.groups.shared.contains { self.groups[$0]?.records.charter.isUnprotected == false } == true
    }
}
