import EarshotWire
import OrderedCollections

/// What this machine thinks of peers, and trust that ends by itself.
extension NodeCore {
    /// What would be kept of a peer by a decision now.
    func storedPeer(_ record: PeerRecord) -> StoredPeer {
        let stored = record.standing.stored
        return StoredPeer(
            id: record.id, name: record.name, trust: record.standing.decided, isTLSPinned: self.pins.contains(record.id),
            isProven: record.hasEverProven, isDecided: stored?.isDecided == true, trustedUntil: stored?.trustedUntil,
            verified: stored?.verified, firstSeen: record.presence.firstSeen, lastSeen: record.presence.lastSeen)
    }

    /// Why a key is not trusted by habit: its digits differed.
    func mismatch(of record: PeerRecord) -> EarshotError? {
        if record.standing.stored?.verified == .mismatched {
            return EarshotError(.forbidden, "the digits of \(record.name) differed when they were compared", remedy: .compareAgain)
        }
        // A person who answers here a moment after the one there has seen other digits is not to overlook it.
        if record.comparing.state == .mismatched {
            return EarshotError(.forbidden, "\(record.name) says that the digits differ", remedy: .compareAgain)
        }
        return nil
    }

    // MARK: A person's decision

    mutating func setTrust(_ trust: Trust, _ name: String, until: WallTime?, _ call: CallID) {
        do throws(EarshotError) {
            let id = try self.resolve(name)
            if let until {
                let limit = self.now.wall + EarshotLimits.trustTime
                guard trust == .trusted, until > self.now.wall, until <= limit else {
                    throw EarshotError(.invalidParameter, "only trust ends by itself, later than now and within ten years")
                }
            }
            guard !self.isStopping else { throw .stopping }
            self.decide(.trust(TrustRequest(peer: id, trust: trust, until: until, name: name), .peer(call)))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// What a person's decision comes to now.
    func change(_ request: TrustRequest) throws(EarshotError) -> (change: TrustChange, operations: [StoreOperation]) {
        let record = self.records[request.peer] ?? PeerRecord(id: request.peer, at: self.now.wall)
        guard PeerID(request.name) != nil || record.hasEverProven else {
            throw EarshotError(
                .invalidParameter, "\"\(request.name)\" has not proven its key yet; name it by its full id, \(request.peer)")
        }
        let change = TrustChange(of: record, request)
        if request.trust == .trusted, !change.isCompared, let mismatch = self.mismatch(of: record) { throw mismatch }
        var stored = self.storedPeer(record)
        change.apply(to: &stored)
        return (change, [.putPeer(stored)] + (request.trust == .trusted ? [] : [.removeSession(with: request.peer)]))
    }

    /// It is on disk.
    mutating func adopt(_ change: TrustChange) {
        let id = change.peer
        self.makeRecord(id)
        guard let record = self.records[id] else { return }
        var stored = self.storedPeer(record)
        change.apply(to: &stored)
        self.records[id]?.standing.keep(stored)
        self.log(
            Notice(
                .info, "a person has decided about a peer",
                [
                    "peer": id, "name": record.name, "trust": change.trust.rawValue, "before": record.trust.rawValue,
                    "compared": change.isMatch,
                ]))
        if change.forgetsTLS { self.pin(id, .forget) } else if stored.isTLSPinned { self.pin(id, .keep) }
        // Also one that was agreed upon while the disk was busy.
        if change.trust != .trusted { self.endSession(with: id, tellPeer: true) }
        self.scheduleTrustExpiry(id)
        let state = self.records[id]?.comparing.state
        if change.isMatch, state == .ready { self.enter(id, .matched) }
        if change.forgetsTLS, state == .mismatched { self.enter(id, .none) }
        if change.trust != .trusted { self.trustEnded(id) }
        // What waits for it here, and is no stranger's any more, gives way to none.
        if change.trust == .trusted {
            self.strangers.invitations.places.release(id)
            self.strangers.comparisons.places.release(id)
            self.acceptWaiting(of: id)
        }
        if change.trust == .blocked {
            self.declineInvitations(of: id)
            self.giveUpComparison(with: id)
            // Before that: what it offers it hears refused, as it will from now on.
            self.endGroupTalk(with: id)
            self.muteLink(of: id)
        } else if change.wasBlocked {
            self.closeMutedLinks(of: id)
            self.ensureConnection(id)
            for group in self.records[id]?.groups.shared ?? [] { self.publishGroup(group) }
        }
        self.publishPeer(id)
    }

    /// Gives up what is on its way to a peer that is not trusted any more, where there is no session to carry it.
    mutating func trustEnded(_ id: PeerID) {
        guard let record = self.records[id], record.sessionID == nil else { return }
        self.spread(.ended(.trust, EarshotError(.notConnected, "\(record.name) is not trusted any more")), of: id)
    }

    // MARK: Trust that ends

    /// What an authority says of the certificate that a peer shows on its connection; `nil` where none speaks for it.
    mutating func vouch(for id: PeerID, until end: WallTime?) {
        let wasTrusted = self.records[id]?.trust == .trusted
        self.records[id]?.standing.vouch(until: end)
        if wasTrusted, self.records[id]?.trust != .trusted { self.trustEnded(id) }
    }

    /// Has trust that was given for a time, or by an authority's certificate, end when it is over.
    mutating func scheduleTrustExpiry(_ id: PeerID) {
        self.deadlines.cancel(.trust(id))
        guard let end = self.records[id]?.standing.nextEnd else { return }
        // Looked at again and again: the clock may be set.
        let left = max(.zero, end - self.now.wall) + .milliseconds(1)
        self.set(.trust(id), after: min(left, EarshotLimits.trustCheck))
    }

    /// Ends the trust that is over, as a person's `distrust` does, but that a peer's TLS is not forgotten: that takes a person.
    mutating func expireTrust(_ id: PeerID) {
        let wasTrusted = self.records[id]?.trust == .trusted
        guard self.records[id]?.standing.expire(at: self.now.wall) == true else {
            // An authority's word is over, and no person has said more: what waits for a session is given up, which nobody opens now.
            if wasTrusted, self.records[id]?.trust != .trusted { self.trustEnded(id) }
            self.scheduleTrustExpiry(id)
            return self.publishPeer(id)
        }
        guard let record = self.records[id] else { return }
        self.log(Notice(.notice, "trust has ended", ["peer": id, "name": record.name]))
        // An authority may still speak for it.
        if record.trust != .trusted {
            self.endSession(with: id, tellPeer: true)
            self.trustEnded(id)
        }
        self.keepPeer(id, andSession: true)
        self.scheduleTrustExpiry(id)
        self.publishPeer(id)
    }

    // MARK: Rules

    /// What the rules go by.
    func policy(of record: PeerRecord) -> PolicyEngine {
        PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: record.trust, source: record.standing.source, trustedUntil: record.standing.stored?.trustedUntil,
                verified: record.standing.stored?.verified, hasSession: record.sessionID != nil,
                isTLSPinned: self.pins.contains(record.id), isInviting: self.isInviting(record.id)),
            settings: self.settings.policy)
    }

    /// Which rule decides what about a peer, and why; also of one that has not been seen, by its full id.
    /// - Throws: as ``resolve(_:)``.
    package func explainPolicy(_ name: String) throws(EarshotError) -> (peer: Peer, decisions: [PolicyDecision]) {
        let id = try self.resolve(name)
        let record = self.records[id] ?? PeerRecord(id: id, at: self.now.wall)
        let groups = record.groups.shared.map { self.label(of: $0).name }
        return (self.snapshot(record), self.policy(of: record).explain(in: groups, files: self.settings.groupFiles))
    }
}

/// What a person's decision about trust changes of a peer.
struct TrustChange: Sendable {
    let peer: PeerID
    let trust: Trust
    let wasBlocked: Bool
    /// Whether the digits are shown that were compared.
    let isCompared: Bool
    private let until: WallTime?

    init(of record: PeerRecord, _ request: TrustRequest) {
        self.peer = request.peer
        self.trust = request.trust
        self.until = request.until
        self.wasBlocked = record.trust == .blocked
        self.isCompared = record.comparing.state == .ready
    }

    /// Taking trust back lets the peer come in plaintext again; unblocking it does not.
    var forgetsTLS: Bool { self.trust == .unknown && !self.wasBlocked }
    /// Whether it says that the digits were equal.
    var isMatch: Bool { self.trust == .trusted && self.isCompared }

    func apply(to stored: inout StoredPeer) {
        stored.isDecided = true
        // The peer has tried to choose the digits while the disk was busy: no person has decided that with that in sight.
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
