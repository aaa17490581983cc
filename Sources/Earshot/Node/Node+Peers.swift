import EarshotWire
public import FoundationEssentials
import OrderedCollections

/// Listing and naming peers, and what this machine thinks of them.
extension Node {
    /// Every peer that is known, connected ones and those of a decision first seen first.
    public func peers() -> [Peer] {
        self.records.values.filter(\.isAnnounced).map(self.snapshot)
    }

    /// The peer that a person means by `name`: a full id, the display name of a peer that is known, at least 8 characters of an id that is
    /// proven, kept or configured, or a stranger's display name, in this order (design section 1).
    ///
    /// - Throws: `unknown-peer`; `ambiguous-peer`, whose message lists the candidates.
    public func peer(_ name: String) throws(EarshotError) -> Peer {
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw Self.unknown(name) }
        return self.snapshot(record)
    }

    /// Nobody answers to the name; ids that begin so and are only advertised are spoken of, a few of them.
    static func unknown(_ name: String, onlyAdvertised ids: [PeerID] = []) -> EarshotError {
        let words = "no peer is called \"\(name)\""
        guard !ids.isEmpty else { return EarshotError(.unknownPeer, words) }
        let list = ids.prefix(EarshotLimits.advertisedIDsNamed).map(\.description).joined(separator: ", ")
        return EarshotError(
            .unknownPeer, "\(words); an id that begins so is advertised, but not proven: to mean that peer, give the whole of it, \(list)")
    }

    /// See ``peer(_:)``; a full id resolves although no such peer has been seen.
    func resolve(_ name: String) throws(EarshotError) -> PeerID {
        if let id = PeerID(name) {
            guard id != self.id else { throw EarshotError(.invalidParameter, "\"\(name)\" is this machine itself") }
            return id
        }
        guard (1...PeerID.textLength * 8).contains(name.utf8.count) else {
            throw EarshotError(.invalidParameter, "a peer is named by its id, 8 or more characters of it, or its display name")
        }
        let entries = self.records.values.filter(\.isAnnounced).map(\.namingEntry)
        let candidates = PeerNaming.candidates(for: name, among: entries)
        guard let first = candidates.first else {
            throw Self.unknown(name, onlyAdvertised: PeerNaming.onlyAdvertised(name, among: entries).map(\.id))
        }
        guard candidates.count == 1 else { throw EarshotError.ambiguous(name, candidates.map { ($0.id, $0.name) }) }
        return first.id
    }

    /// Sets what this machine thinks of a peer; the decision is on disk when this returns.
    ///
    /// `blocked` also ends its sessions, declines its invitation and stops listening to it. `unknown` ends its sessions where it
    /// was trusted or in one, and forgets that it has spoken TLS, and what came of a comparison of digits, here or by the peer's word.
    /// `trusted` while digits are shown says that they were equal.
    ///
    /// Trust ends by itself at `until`, and is for good where that is `nil`.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `invalid-parameter` for a key that is not proven and not named by its full id, and for
    ///   a time that is over or more than `EarshotLimits.trustTime` away; `forbidden` for trust in a key whose digits differed, by a
    ///   person's word here or, in this run, there.
    public func setTrust(_ trust: Trust, for name: String, until: Date? = nil) async throws(EarshotError) -> Peer {
        let id = try self.resolve(name)
        if let until {
            let limit = self.now.addingTimeInterval(EarshotLimits.trustTime / .seconds(1))
            guard trust == .trusted, until > self.now, until <= limit else {
                throw EarshotError(.invalidParameter, "only trust ends by itself, later than now and within ten years")
            }
        }
        try await self.decide {
            let record = self.records[id] ?? PeerRecord(id: id, now: self.now)
            guard PeerID(name) != nil || record.hasEverProven else {
                return .failure(
                    EarshotError(.invalidParameter, "\"\(name)\" has not proven its key yet; name it by its full id, \(id)"))
            }
            let change = TrustChange(of: record, to: trust, until: until)
            if trust == .trusted, !change.isCompared, let mismatch = self.mismatch(of: record) { return .failure(mismatch) }
            var stored = self.storedPeer(record)
            change.apply(to: &stored)
            return .success(StoreWork.Decision(changes: [.putPeer(stored)] + change.ends(id)) { self.adopt(change, of: id) })
        }
        let record = self.records[id] ?? PeerRecord(id: id, now: self.now)
        return self.snapshot(record)
    }

    private func adopt(_ change: TrustChange, of id: PeerID) {
        let record = self.records[id] ?? PeerRecord(id: id, now: self.now)
        var stored = self.storedPeer(record)
        change.apply(to: &stored)
        self.records[id, default: record].stored = stored
        if change.forgetsTLS { self.transport.spokenTLS.forget(id) } else { self.keepSpokenTLS(stored) }
        // Also one that was agreed upon while the disk was busy.
        if change.trust != .trusted { self.sessionEnded(id, tellPeer: true) }
        self.scheduleTrustExpiry(id)
        if change.isMatch, self.records[id]?.comparison?.state == .ready { self.enter(id, .matched) }
        if change.forgetsTLS, self.records[id]?.comparison?.state == .mismatched { self.enter(id, .none) }
        if change.trust != .trusted { self.giveUpSending(to: id) }
        // What waits for it here, and is no stranger's any more, gives way to none.
        if change.trust == .trusted {
            self.strangers.invitations.places.release(id)
            self.strangers.comparisons.places.release(id)
        }
        if change.trust == .blocked {
            self.declineInvitations(of: id)
            self.giveUpComparison(with: id)
            self.muteConnection(of: id)
        } else if change.wasBlocked {
            self.unmuteConnections(of: id)
        }
        self.publishPeer(id)
    }

    /// What would be kept of a peer by a decision now.
    func storedPeer(_ record: PeerRecord) -> StoredPeer {
        StoredPeer(
            id: record.id, name: record.name, trust: record.decidedTrust,
            spokenTLS: self.transport.spokenTLS.contains(record.id), isProven: record.hasEverProven,
            isDecided: record.stored?.isDecided == true, trustedUntil: record.stored?.trustedUntil, verified: record.stored?.verified,
            firstSeen: record.firstSeen,
            lastSeen: record.lastSeen)
    }

    /// Why a key is not trusted by habit: its digits differed.
    func mismatch(of record: PeerRecord) -> EarshotError? {
        let next = "compare them again with earshot verify, or forget that with earshot distrust"
        if record.stored?.verified == .mismatched {
            return EarshotError(.forbidden, "the digits of \(record.name) differed when they were compared; \(next)")
        }
        // Whoever answers here a moment after the person there has seen other digits is not to overlook it.
        if record.comparison?.state == .mismatched {
            return EarshotError(.forbidden, "\(record.name) says that the digits differ; \(next)")
        }
        return nil
    }
}

/// What a person's decision about trust changes of a peer.
private struct TrustChange {
    let trust: Trust
    let until: Date?
    let wasBlocked: Bool
    /// Whether the digits are shown that were compared.
    let isCompared: Bool

    init(of record: PeerRecord, to trust: Trust, until: Date?) {
        self.trust = trust
        self.until = until
        self.wasBlocked = record.trust == .blocked
        self.isCompared = record.comparison?.state == .ready
    }

    /// Taking trust back lets the peer come in plaintext again; unblocking it does not.
    var forgetsTLS: Bool { self.trust == .unknown && !self.wasBlocked }
    /// Whether it says that the digits were equal.
    var isMatch: Bool { self.trust == .trusted && self.isCompared }

    /// Whatever session there is goes with trust that is taken back.
    func ends(_ id: PeerID) -> [StoreChange] { self.trust == .trusted ? [] : [.removeSession(with: id)] }

    func apply(to stored: inout StoredPeer) {
        stored.isDecided = true
        stored.trust = self.trust
        stored.trustedUntil = self.until
        if self.forgetsTLS {
            stored.spokenTLS = false
            stored.verified = nil
        }
        if self.isMatch { stored.verified = .matched }
    }
}

extension EarshotError {
    /// More than one peer answers to a name; the candidates are listed in ``candidates`` and in the message.
    static func ambiguous(_ name: String, _ candidates: [(id: PeerID, name: String)]) -> EarshotError {
        EarshotError(
            .ambiguousPeer,
            "\"\(name)\" could be any of \(candidates.count) peers: "
                + candidates.map { "\($0.name) (\($0.id))" }.joined(separator: ", "),
            candidates: candidates.map { Candidate(id: $0.id, name: $0.name) })
    }
}
