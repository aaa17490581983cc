import EarshotWire
public import FoundationEssentials
import OrderedCollections

/// Listing and naming peers, and what this machine thinks of them.
extension Node {
    /// Every peer that is known, connected ones and those of a decision first seen first.
    public func peers() -> [Peer] {
        self.records.values.filter(\.isAnnounced).map(self.snapshot)
    }

    /// The peer that a person means by `name`: a full id, a prefix of at least 8 characters, or a display name (design section 1).
    ///
    /// - Throws: `unknown-peer`; `ambiguous-peer`, whose message lists the candidates.
    public func peer(_ name: String) throws(EarshotError) -> Peer {
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw Self.unknown(name) }
        return self.snapshot(record)
    }

    static func unknown(_ name: String) -> EarshotError {
        EarshotError(.unknownPeer, "no peer is called \"\(name)\"")
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
        let announced = self.records.values.filter(\.isAnnounced)
        let candidates = PeerNaming.candidates(
            for: name,
            among: announced.map { record in
                PeerNaming.Entry(
                    id: record.id, name: record.name, isConnected: record.connection != nil, isProven: record.isProven,
                    isKnown: record.stored != nil, trust: record.trust)
            })
        guard let first = candidates.first else { throw Self.unknown(name) }
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
        let record = self.records[id] ?? PeerRecord(id: id, now: Date())
        guard PeerID(name) != nil || record.hasEverProven else {
            throw EarshotError(
                .invalidParameter, "\"\(name)\" has not proven its key yet; name it by its full id, \(id)")
        }
        if let until {
            let limit = self.now.addingTimeInterval(EarshotLimits.trustTime / .seconds(1))
            guard trust == .trusted, until > self.now, until <= limit else {
                throw EarshotError(.invalidParameter, "only trust ends by itself, later than now and within ten years")
            }
        }
        let isCompared = record.comparison?.state == .ready
        if trust == .trusted, !isCompared { try self.checkMismatch(record) }
        let wasBlocked = record.trust == .blocked
        var stored = self.storedPeer(record)
        stored.trust = trust
        stored.trustedUntil = until
        // Taking trust back lets the peer come in plaintext again; unblocking it does not.
        let forgetsTLS = trust == .unknown && !wasBlocked
        if forgetsTLS {
            stored.spokenTLS = false
            stored.verified = nil
        }
        if trust == .trusted, isCompared { stored.verified = .matched }
        var changes: [StoreChange] = [.putPeer(stored)]
        // Unblocking ends nothing: a blocked peer has no session.
        let ended = trust == .trusted ? nil : record.session
        if let ended { changes.append(.removeSession(ended.id)) }
        try await self.persist(changes)
        var current = self.records[id] ?? record
        current.stored = stored
        self.records[id] = current
        if forgetsTLS { self.transport.spokenTLS.forget(id) } else { self.keepSpokenTLS(stored) }
        if let ended, current.session?.id == ended.id { self.sessionEnded(id, tellPeer: true) }
        self.scheduleTrustExpiry(id)
        if trust == .trusted, isCompared, self.records[id]?.comparison?.state == .ready { self.enter(id, .matched) }
        if forgetsTLS, self.records[id]?.comparison?.state == .mismatched { self.enter(id, .none) }
        if trust != .trusted, self.records[id]?.session == nil {
            self.failOutbox(of: id, EarshotError(.notConnected, "\(current.name) is not trusted any more"), queuedToo: true)
            self.interruptTransfers(of: id, .notConnected, "\(current.name) is not trusted any more")
        }
        if trust == .blocked {
            self.declineInvitations(of: id)
            self.muteConnection(of: id)
        } else if wasBlocked {
            self.unmuteConnections(of: id)
        }
        self.publishPeer(id)
        return self.records[id].map(self.snapshot) ?? self.snapshot(current)
    }

    /// What would be kept of a peer by a decision now.
    func storedPeer(_ record: PeerRecord) -> StoredPeer {
        StoredPeer(
            id: record.id, name: record.name, trust: record.decidedTrust,
            spokenTLS: self.transport.spokenTLS.contains(record.id), isProven: record.hasEverProven,
            trustedUntil: record.stored?.trustedUntil, verified: record.stored?.verified, firstSeen: record.firstSeen,
            lastSeen: record.lastSeen)
    }

    /// A key whose digits differed is not trusted by habit.
    func checkMismatch(_ record: PeerRecord) throws(EarshotError) {
        let next = "compare them again with earshot verify, or forget that with earshot distrust"
        if record.stored?.verified == .mismatched {
            throw EarshotError(.forbidden, "the digits of \(record.name) differed when they were compared; \(next)")
        }
        // Whoever answers here a moment after the person there has seen other digits is not to overlook it.
        if record.comparison?.state == .mismatched {
            throw EarshotError(.forbidden, "\(record.name) says that the digits differ; \(next)")
        }
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
