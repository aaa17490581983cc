import EarshotWire
import OrderedCollections

/// Connecting to peers: wanted peers without a connection are dialled, with a pause that grows with their failures.
extension NodeCore {
    /// Whether this peer should be connected now, as a result of a user's decisions.
    func isWanted(_ record: PeerRecord) -> Bool {
        guard record.trust != .blocked else { return false }
        return !self.isWantedForGroupsAlone(record) || self.isWantedForGroups(record)
    }

    mutating func needed(_ need: PeerNeed, of peer: PeerID) {
        switch need {
        case .session: self.inviteUnlessUnderWay(peer)
        case .sessionForQueue: self.inviteForQueue(peer)
        case .connection(let now): self.ensureConnection(peer, now: now)
        }
    }

    /// Dials a peer that is wanted and not connected, at once or after the pause that follows failures.
    mutating func ensureConnection(_ id: PeerID, now: Bool = false) {
        guard !self.isStopping, let record = self.records[id], self.isWanted(record), record.connection == nil, !self.isDialling(record)
        else { return }
        if !now, record.reach.attempts == 0, self.isWantedForGroupsAlone(record) {
            if !self.deadlines.contains(.redial(id)) { self.scheduleDial(id, after: self.groupDialDelay(id)) }
            return
        }
        guard !now, record.reach.attempts > 0 else { return self.dial(id) }
        // Each message may ask for the connection. A request must not postpone a dial that is already scheduled.
        if !self.deadlines.contains(.redial(id)) { self.scheduleDial(id, after: record.reach.pause) }
    }

    /// Schedules a dial for the given time, and none before.
    mutating func scheduleDial(_ id: PeerID, after pause: Duration) { self.set(.redial(id), after: pause) }

    mutating func cancelDial(_ id: PeerID) { self.deadlines.cancel(.redial(id)) }

    mutating func redialDue(_ id: PeerID) {
        if let record = self.records[id], self.isWantedForGroupsAlone(record), self.isDiallingManyMembers {
            return self.scheduleDial(id, after: self.groupDialDelay(id))
        }
        // The peer is being dialled at its configured address. It is dialled where discovery sees it when that dial is over.
        if let record = self.records[id], record.connection == nil, !record.reach.isBusy, self.isDialling(record) {
            return self.scheduleDial(id, after: EarshotLimits.redialDelays[1])
        }
        self.ensureConnection(id, now: true)
    }

    /// Whether this side is dialling the peer. The resulting connection may supersede the present one.
    func isDialling(_ record: PeerRecord) -> Bool {
        record.reach.isBusy || record.reach.configured.contains { self.configuredDials[$0]?.reach.isBusy == true }
    }

    private mutating func dial(_ id: PeerID) {
        self.cancelDial(id)
        guard let record = self.records[id] else { return }
        let seen = record.presence.sightedAddresses
        // A peer that is only configured is dialled by the configured schedule, which resolves its addresses again.
        guard !seen.isEmpty || record.reach.configured.isEmpty else { return }
        guard !seen.isEmpty || record.reach.lastGoodAddress != nil else {
            self.records[id]?.reach.foundNowhere()
            return
        }
        guard let plan = self.records[id]?.reach.plan(seen) else { return }
        self.records[id]?.reach.asked()
        self.emit(.dial(id, plan))
    }

    mutating func dialReported(_ id: PeerID, _ event: DialEvent) {
        guard let record = self.records[id], record.reach.isBusy else { return }
        switch event {
        case .began:
            self.records[id]?.reach.began()
            self.publishPeer(id)
        case .nowhere:
            self.records[id]?.reach.foundNowhere()
            self.beginComparison(id)
        case .answered: break
        case .ended(let error): self.dialEnded(id, error)
        }
    }

    private mutating func dialEnded(_ id: PeerID, _ error: EarshotError?) {
        guard let record = self.records[id] else { return }
        guard let error else {
            self.records[id]?.reach.dialSucceeded()
            self.beginComparison(id)
            // The connection may have been lost before this report. The peer still counted as being dialled then, and no dial was scheduled.
            if !self.deadlines.contains(.redial(id)) { self.ensureConnection(id) }
            return self.publishPeer(id)
        }
        let explained = self.withoutOthers(error).explained(name: record.name, ours: self.settings.encryption)
        let isNews = record.reach.lastError?.code != explained.code
        self.records[id]?.reach.dialFailed(explained)
        self.beginComparison(id)
        // If the peer is no longer seen, its last address may belong to any machine by now.
        if explained.isFinalForDial, !record.presence.sightings.isEmpty {
            self.log(Notice(isNews ? .warning : .debug, "cannot agree with a peer", ["peer": id, "error": explained]))
            // If the peer has connected meanwhile, pending traffic uses that connection.
            if record.connection == nil { self.disagreed(with: id, explained) }
        } else {
            self.log(Notice(.debug, "cannot reach a peer", ["peer": id, "error": explained]))
        }
        self.ensureConnection(id)
        self.publishPeer(id)
    }

    /// Returns the part of a dial's failure that concerns the peer itself. Anyone can advertise an address for a peer, and the address of a
    /// machine that is off is soon reused. If another machine answers, the peer was only not reached.
    private func withoutOthers(_ error: EarshotError) -> EarshotError {
        if error.underlying as? WireError == .ownKey {
            return EarshotError(.unavailable, "this machine itself has its last address", underlying: error)
        }
        guard let other = error.underlying as? AnotherAnswers else { return error }
        let name = self.records[other.id].map { "\($0.name) (\(other.id))" } ?? other.id.description
        return EarshotError(.unavailable, "another machine, \(name), answers at \(other.address)", underlying: error)
    }

    /// Handles an incompatibility with a peer that another dial would not resolve. Everything that waits for a connection fails with the
    /// reason.
    mutating func disagreed(with id: PeerID, _ error: EarshotError) {
        // If the peer has accepted an invitation, its session is valid, and the invitation is resolved when the session is on disk.
        let accepted = self.invitations.pending(with: id, .outgoing).flatMap { self.invitations[$0]?.isDeciding == true ? $0 : nil }
        for pending in self.invitations.allPending(with: id, .outgoing) where pending != accepted {
            self.resolveInvitation(pending, .failed, error)
        }
        self.failComparison(with: id, error)
        self.spread(.unreachable(error), of: id)
    }
}

extension EarshotError {
    /// Whether dialling again would fail in the same way.
    package var isFinalForDial: Bool {
        switch self.code {
        case .identityMismatch, .encryptionMismatch, .versionUnsupported, .serviceMismatch, .downgradeDetected, .unsupported: true
        default: false
        }
    }

    /// Returns the error of a dial in words for the user who has to fix it: which setting to change, or which command to run.
    func explained(name: String, ours: EncryptionPreference) -> EarshotError {
        let words: String
        var remedy: Remedy?
        switch (self.code, ours) {
        case (.encryptionMismatch, .required):
            words =
                "\(name) speaks plaintext only, and this machine requires encryption; "
                + "set encryption = optional in [peer] there, or here to talk unprotected"
        case (.encryptionMismatch, .none):
            words = "\(name) requires encryption, and this machine has it off; set encryption = optional in [peer] here"
        case (.encryptionMismatch, .optional):
            words = "\(name) agrees to neither TLS nor plaintext; look at encryption in [peer] there"
        case (.downgradeDetected, .optional) where self.underlying as? WireError == .tlsPinned:
            words =
                "\(name) has used TLS with this machine before, and now allows plaintext only; "
                + "if that is intended, revoke the trust in it"
            remedy = .distrust
        case (.downgradeDetected, .none) where !(self.underlying is WireError):
            words =
                "\(name) does not accept plaintext from this machine, which has used TLS with it before; "
                + "set encryption = optional in [peer] here, or revoke the trust in this machine there"
        case (.downgradeDetected, _):
            words =
                "a man in the middle on the path to \(name) removes the encryption, and nothing was sent; "
                + "set encryption = required in [peer] on both"
        default: return self
        }
        return EarshotError(self.code, words, underlying: self, remedy: remedy)
    }
}
