import EarshotWire
import OrderedCollections

/// Decisions about trust in peers, and trust that expires.
extension NodeCore {
    /// Returns the row that a decision would store for a peer now.
    func storedPeer(_ record: PeerRecord) -> StoredPeer {
        let stored = record.standing.stored
        return StoredPeer(
            id: record.id, name: record.ownName, alias: stored?.alias, trust: record.standing.decided,
            isTLSPinned: self.pins.contains(record.id),
            isProven: record.hasEverProven, isDecided: stored?.isDecided == true, trustedUntil: stored?.trustedUntil,
            verified: stored?.verified, firstSeen: record.presence.firstSeen, lastSeen: record.presence.lastSeen)
    }

    /// Returns the reason why a key is not trusted without a new comparison: its digits differed.
    func mismatch(of record: PeerRecord) -> EarshotError? {
        if record.standing.stored?.verified == .mismatched {
            return EarshotError(.forbidden, "the digits of \(record.name) differed when they were compared", remedy: .compareAgain)
        }
        // The user there may have seen different digits a moment ago. A user here who answers now must not overlook that.
        if record.comparing.state == .mismatched {
            return EarshotError(.forbidden, "\(record.name) says that the digits differ", remedy: .compareAgain)
        }
        return nil
    }

    // MARK: Decisions by a user

    mutating func setTrust(_ trust: Trust, _ name: String, until: WallTime?, _ call: CallID) {
        do throws(EarshotError) {
            let id = try self.resolve(name)
            if let until {
                let limit = self.now.wall + EarshotLimits.trustTime
                guard trust == .trusted, until > self.now.wall, until <= limit else {
                    throw EarshotError(.invalidParameter, "only trust can expire, at a time later than now and within ten years")
                }
            }
            guard !self.isStopping else { throw .stopping }
            self.decide(.trust(TrustRequest(peer: id, trust: trust, until: until, name: name), .peer(call)))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Computes the change that a user's decision makes from the present state, with its store operations.
    func change(_ request: TrustRequest) throws(EarshotError) -> (change: TrustChange, operations: [StoreOperation]) {
        let record = self.records[request.peer] ?? PeerRecord(id: request.peer, at: self.now.wall)
        try self.checkKey(of: record, named: request.name)
        let change = TrustChange(of: record, request)
        if request.trust == .trusted, !change.isCompared, let mismatch = self.mismatch(of: record) { throw mismatch }
        var stored = self.storedPeer(record)
        change.apply(to: &stored)
        return (change, [.putPeer(stored)] + (request.trust == .trusted ? [] : [.removeSession(with: request.peer)]))
    }

    /// Checks that a decision means one key: a name that was only advertised may be another peer's in a moment.
    func checkKey(of record: PeerRecord, named name: String) throws(EarshotError) {
        guard PeerID(name) != nil || record.hasEverProven else {
            throw EarshotError(.invalidParameter, "\"\(name)\" has not proven its key yet; name it by its full id, \(record.id)")
        }
    }

    /// Applies a decision about trust after it was written.
    mutating func adopt(_ change: TrustChange) {
        let id = change.peer
        self.makeRecord(id)
        guard let record = self.records[id] else { return }
        var stored = self.storedPeer(record)
        change.apply(to: &stored)
        self.records[id]?.standing.keep(stored)
        self.log(
            Notice(
                .info, "a user has decided about a peer",
                [
                    "peer": id, "name": record.name, "trust": change.trust.rawValue, "before": record.trust.rawValue,
                    "compared": change.isMatch,
                ]))
        if change.forgetsTLS { self.pin(id, .forget) } else if stored.isTLSPinned { self.pin(id, .keep) }
        // This also ends a session that was agreed upon during the write.
        if change.trust != .trusted { self.endSession(with: id, tellPeer: true) }
        self.scheduleTrustExpiry(id)
        let state = self.records[id]?.comparing.state
        if change.isMatch, state == .ready { self.enter(id, .matched) }
        if change.forgetsTLS, state == .mismatched { self.enter(id, .none) }
        if change.trust != .trusted { self.trustEnded(id) }
        // Requests of a trusted peer no longer occupy a stranger's place, and no stranger can displace them.
        if change.trust == .trusted {
            self.strangers.invitations.places.release(id)
            self.strangers.comparisons.places.release(id)
            self.acceptWaiting(of: id)
        }
        if change.trust == .blocked {
            self.declineInvitations(of: id)
            self.giveUpComparison(with: id)
            // The group traffic ends before the link is muted, so that the peer's pending offers are refused like its later ones.
            self.endGroupTalk(with: id)
            self.muteLink(of: id)
        } else if change.wasBlocked {
            self.closeMutedLinks(of: id)
            self.ensureConnection(id)
            for group in self.records[id]?.groups.shared ?? [] { self.publishGroup(group) }
        }
        self.publishPeer(id)
    }

    /// Fails pending traffic to a peer that is no longer trusted, if no session can carry it.
    mutating func trustEnded(_ id: PeerID) {
        guard let record = self.records[id], record.sessionID == nil else { return }
        self.spread(.ended(.trust, EarshotError(.notConnected, "\(record.name) is not trusted any more")), of: id)
    }

    // MARK: Expiry of trust

    /// Records the end of the validity of a peer's certificate according to a configured authority; `nil` if no authority signed it.
    mutating func vouch(for id: PeerID, until end: WallTime?) {
        let wasTrusted = self.records[id]?.trust == .trusted
        self.records[id]?.standing.vouch(until: end)
        if wasTrusted, self.records[id]?.trust != .trusted { self.trustEnded(id) }
    }

    /// Schedules the end of trust that a user gave for a limited time, or that an authority's certificate gives.
    mutating func scheduleTrustExpiry(_ id: PeerID) {
        self.deadlines.cancel(.trust(id))
        guard let end = self.records[id]?.standing.nextEnd else { return }
        // The deadline is checked at short intervals, because the clock may be set.
        let left = max(.zero, end - self.now.wall) + .milliseconds(1)
        self.set(.trust(id), after: min(left, EarshotLimits.trustCheck))
    }

    /// Ends expired trust, with the effects of `distrust` except one: the peer's TLS pin stays, because only a user may reset it.
    mutating func expireTrust(_ id: PeerID) {
        let wasTrusted = self.records[id]?.trust == .trusted
        guard self.records[id]?.standing.expire(at: self.now.wall) == true else {
            // An authority's certificate has expired, and no user has decided about the peer. Traffic that waits for a session fails,
            // because nobody will open one.
            if wasTrusted, self.records[id]?.trust != .trusted { self.trustEnded(id) }
            self.scheduleTrustExpiry(id)
            return self.publishPeer(id)
        }
        guard let record = self.records[id] else { return }
        self.log(Notice(.notice, "trust has ended", ["peer": id, "name": record.name]))
        // An authority may still vouch for the peer.
        if record.trust != .trusted {
            self.endSession(with: id, tellPeer: true)
            self.trustEnded(id)
        }
        self.keepPeer(id, andSession: true)
        self.scheduleTrustExpiry(id)
        self.publishPeer(id)
    }

    // MARK: Rules

    /// Returns the policy engine with the facts about a peer.
    func policy(of record: PeerRecord) -> PolicyEngine {
        PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: record.trust, source: record.standing.source, trustedUntil: record.standing.stored?.trustedUntil,
                verified: record.standing.stored?.verified, hasSession: record.sessionID != nil,
                isTLSPinned: self.pins.contains(record.id), isInviting: self.isInviting(record.id)),
            settings: self.settings.policy)
    }

    /// Returns the rules that apply to a peer and their reasons. A full id works also for a peer that was never seen.
    /// - Throws: as ``resolve(_:)``.
    package func explainPolicy(_ name: String) throws(EarshotError) -> (peer: Peer, decisions: [PolicyDecision]) {
        let id = try self.resolve(name)
        if id.kind == .localsend { return (self.shown(id), self.devicePolicy(of: id).explainDevice()) }
        let record = self.records[id] ?? PeerRecord(id: id, at: self.now.wall)
        let groups = record.groups.shared.map { self.label(of: $0).name }
        return (self.snapshot(record), self.policy(of: record).explain(in: groups, files: self.settings.groupFiles))
    }
}

/// The change that a user's decision about trust makes to a peer.
struct TrustChange: Sendable {
    let peer: PeerID
    let trust: Trust
    let wasBlocked: Bool
    /// Whether the compared digits are being shown.
    let isCompared: Bool
    private let until: WallTime?

    init(of record: PeerRecord, _ request: TrustRequest) {
        self.peer = request.peer
        self.trust = request.trust
        self.until = request.until
        self.wasBlocked = record.trust == .blocked
        self.isCompared = record.comparing.state == .ready
    }

    /// Whether the peer may use plaintext again: after trust is revoked, but not after an unblock.
    var forgetsTLS: Bool { self.trust == .unknown && !self.wasBlocked }
    /// Whether the decision confirms that the digits were equal.
    var isMatch: Bool { self.trust == .trusted && self.isCompared }

    func apply(to stored: inout StoredPeer) {
        stored.isDecided = true
        // The comparison failed during the write: the peer tried to choose the digits. The user's decision did not take that into account.
        if self.trust == .trusted, !self.isCompared, stored.verified == .mismatched { return }
        stored.trust = self.trust
        stored.trustedUntil = self.until
        if self.forgetsTLS {
            stored.isTLSPinned = false
            stored.verified = nil
        }
        if self.isMatch { stored.verified = .matched }
    }
}
