import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Two persons compare digits, so that each knows whose key the other's is (design section 3).
///
/// Digits are shown only once a person on each side has asked. What a comparison is bound to is the connection's transcript: one that is
/// waited for goes on with the next connection, one whose nonces are under way fails with its connection.
extension Node {
    // MARK: What a person asks for

    /// Asks for a comparison with a peer, which is dialled for it; the digits come with `verification.changed`, once the peer's person has
    /// asked too, within `timeout` or `EarshotLimits.comparisonTime`. Asked again while it waits, it waits for the longer of the two.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer, `busy` where it is too soon after the last comparison.
    public func verify(_ name: String, timeout: Duration? = nil) async throws(EarshotError) -> Verification {
        guard !self.isStopping else { throw Self.stopping }
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw EarshotError(.unknownPeer, "no peer with the id \(id) has been seen") }
        guard record.trust != .blocked else {
            throw EarshotError(.forbidden, "\(record.name) is blocked; run earshot unblock first")
        }
        var timeout = timeout ?? EarshotLimits.comparisonTime
        if timeout <= .zero { timeout = EarshotLimits.comparisonTime }
        timeout = min(timeout, EarshotLimits.comparisonTimeLimit)
        if let comparison = record.comparison, comparison.state == .waiting {
            self.extend(comparison, with: id, to: timeout)
            return self.records[id].map(self.verification) ?? self.verification(of: record)
        }
        if let pause = self.comparisonAttempts.pause(for: id, at: self.transport.timers.now) {
            let seconds = pause.components.seconds + 1
            throw EarshotError(.busy, "digits were compared a moment ago; wait \(seconds) s before the next attempt with \(record.name)")
        }
        self.enter(id, .waiting, for: timeout)
        self.beginComparison(id)
        self.records[id]?.redial.attempts = 0
        self.ensureConnection(id, now: true)
        self.redialConfigured(id, after: .zero)
        return self.records[id].map(self.verification) ?? self.verification(of: record)
    }

    /// How the comparison with a peer stands.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func verification(_ name: String) throws(EarshotError) -> Verification {
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw Self.unknown(name) }
        return self.verification(of: record)
    }

    /// Gives a comparison up, or says that the digits differ: that is remembered, and takes trust back.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `conflict` where there are no digits that could differ; `storage`.
    public func endVerification(_ name: String, mismatch: Bool) async throws(EarshotError) -> Verification {
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw Self.unknown(name) }
        let state = record.comparison?.state ?? .none
        if mismatch {
            guard state == .ready else {
                throw EarshotError(.conflict, "there are no digits of \(record.name) that could differ; run earshot verify first")
            }
            try await self.keepMismatch(id)
            self.endAttempt(id, .mismatch)
            self.enter(
                id, .mismatched,
                EarshotError(.identityMismatch, "the digits differ: somebody is between this machine and \(record.name), or it is another"))
        } else if [.requested, .waiting, .ready].contains(state) {
            self.endAttempt(id, .givenUp)
            self.enter(id, .cancelled)
        }
        return self.records[id].map(self.verification) ?? self.verification(of: record)
    }

    // MARK: The exchange

    /// Begins, or answers, where a person here has asked and there is a connection that stays: where both sides dial at once, one of the two
    /// supersedes the other, and an exchange on that one would be lost with it.
    func beginComparison(_ id: PeerID) {
        guard let record = self.records[id], record.comparison?.state == .waiting, let connection = record.connection,
            !self.isDialling(record), var machine = record.comparing
        else { return }
        let nonce = [UInt8].random(count: WireLimits.verificationPart)
        let action = machine.start(id: .random(), nonce: nonce)
        self.records[id]?.comparing = machine
        switch action {
        case .send(let frame):
            connection.send([.verification(frame)])
            if machine.stage == .exchanging {
                self.comparisonAttempts.note(id, at: self.transport.timers.now)
                self.schedule(.comparisonStep(id, frame.id), after: EarshotLimits.comparisonStepTime)
            }
        case .alreadyUnderWay: break
        }
    }

    func received(_ frame: VerificationFrame, from id: PeerID) {
        guard let record = self.records[id], let connection = record.connection, var machine = record.comparing else { return }
        let action = machine.received(frame)
        self.records[id]?.comparing = machine
        switch action {
        case .requested: self.comparisonRequested(id)
        case .givesWay(let end):
            connection.send([.verification(end)])
            self.beginComparison(id)
        case .reveal(let reveal, let digits):
            self.comparisonAttempts.note(id, at: self.transport.timers.now)
            connection.send([.verification(reveal)])
            self.enter(id, .ready, digits: digits, for: EarshotLimits.comparisonShownTime)
        case .show(let digits): self.enter(id, .ready, digits: digits, for: EarshotLimits.comparisonShownTime)
        case .ended(let reason): self.comparisonEnded(id, reason)
        case .ignore: break
        case .falseReveal(let error):
            self.logger.warning("a peer has tried to choose the digits of a comparison", metadata: ["peer": "\(id)"])
            connection.close(error.refusal)
            self.rememberMismatch(id)
            self.enter(
                id, .mismatched,
                EarshotError(.protocolViolation, "\(record.name) has revealed another number than it had committed to; do not trust it"))
        case .violation(let error): connection.close(error.refusal)
        }
    }

    private func comparisonRequested(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        // Asked here too, and only waiting for the connection that stays.
        guard record.comparison?.state != .waiting else { return self.beginComparison(id) }
        // A stranger that nobody is to see is answered once somebody here asks for it, and not told of before.
        guard !self.configuration.pairedOnly || record.trust == .trusted || record.session != nil else { return }
        guard self.mayCompare(record) else { return self.endAttempt(id, .busy) }
        self.enter(id, .requested, for: EarshotLimits.comparisonTimeLimit)
    }

    /// Whether the request of a peer may wait for a person here: strangers wait in few places, others do not ask too often and no more.
    private func mayCompare(_ record: PeerRecord) -> Bool {
        let isStranger = record.trust != .trusted && (record.session == nil || record.stored?.isDecided != true)
        let origin = record.connection?.origin ?? []
        let now = self.transport.timers.now
        guard self.strangers.comparisons.rate.admit(record.id, from: isStranger ? origin : nil, at: now) else { return false }
        guard isStranger else { return true }
        switch self.strangers.comparisons.places.admit(record.id, from: origin) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, _):
            self.endAttempt(other, .busy)
            self.enter(other, .failed, EarshotError(.busy, "too many strangers want to compare digits, and another one has its place"))
            return true
        }
    }

    /// Blocking somebody ends what was to be compared.
    func giveUpComparison(with id: PeerID) {
        guard let state = self.records[id]?.comparison?.state, [.requested, .waiting, .ready].contains(state) else { return }
        self.endAttempt(id, .givenUp)
        self.enter(id, .cancelled)
    }

    private func comparisonEnded(_ id: PeerID, _ reason: VerificationFrame.EndReason) {
        guard let record = self.records[id], let comparison = record.comparison else { return }
        let name = record.name
        switch (comparison.state, reason) {
        case (.waiting, .givenUp), (.requested, .givenUp): self.enter(id, .cancelled, EarshotError(.cancelled, "\(name) has given it up"))
        case (.waiting, .timedOut), (.requested, .timedOut):
            self.enter(id, .timedOut, EarshotError(.timedOut, "\(name) has stopped waiting"))
        case (.waiting, .busy), (.requested, .busy):
            self.enter(id, .failed, EarshotError(.busy, "\(name) has too many comparisons waiting; try again later"))
        case (_, .mismatch):
            self.enter(id, .mismatched, EarshotError(.identityMismatch, "\(name) says that the digits differ; do not trust it"))
        case (.none, _), (.ready, _), (.matched, _), (.mismatched, _), (.cancelled, _), (.timedOut, _), (.failed, _): break
        }
    }

    /// The peer is connected anew: what is waited for goes on.
    func resumeComparison(_ id: PeerID, on connection: Connection) {
        self.records[id]?.comparing = VerificationStateMachine(
            localID: self.id, peerID: id, transcript: connection.peer.transcript)
        self.beginComparison(id)
    }

    /// The connection is gone, and with it the transcript.
    func interruptComparison(_ id: PeerID) {
        guard let record = self.records[id], let machine = record.comparing else { return }
        self.records[id]?.comparing = nil
        switch (record.comparison?.state, machine.stage) {
        case (.waiting, .exchanging):
            self.enter(id, .failed, EarshotError(.unavailable, "the connection was lost; run earshot verify again"))
        case (.requested, _): self.enter(id, .cancelled, EarshotError(.notConnected, "\(record.name) has gone"))
        case (_, .idle), (_, .requested), (_, .waiting), (_, .exchanging), (_, .shown): break
        }
    }

    /// It cannot be reached in a way that trying again would not change.
    func failComparison(with id: PeerID, _ error: EarshotError) {
        guard self.records[id]?.comparison?.state == .waiting else { return }
        self.enter(id, .failed, error)
    }

    // MARK: Time

    /// The time of a state is over.
    func comparisonExpired(_ id: PeerID, _ comparison: VerificationID) {
        guard let record = self.records[id], let current = record.comparison, current.id == comparison else { return }
        switch current.state {
        case .waiting:
            self.endAttempt(id, .timedOut)
            let why = record.connection == nil ? record.redial.lastError.map { ": \($0.message)" } ?? "" : "; run earshot verify there too"
            self.enter(id, .timedOut, EarshotError(.timedOut, "\(record.name) has not asked for it in time\(why)"))
        case .requested, .ready:
            self.endAttempt(id, .timedOut)
            self.enter(id, .none)
        case .none, .matched, .mismatched, .cancelled, .timedOut, .failed: break
        }
    }

    /// A peer that has asked, and then does not reveal.
    func comparisonStepExpired(_ id: PeerID, _ attempt: VerificationID) {
        guard let record = self.records[id], let machine = record.comparing, machine.stage == .exchanging, machine.isAt(attempt) else {
            return
        }
        self.endAttempt(id, .timedOut)
        self.enter(id, .timedOut, EarshotError(.timedOut, "\(record.name) has not answered in time"))
    }

    // MARK: State

    private func endAttempt(_ id: PeerID, _ reason: VerificationFrame.EndReason) {
        guard let record = self.records[id], var machine = record.comparing else { return }
        let frame = machine.end(reason)
        self.records[id]?.comparing = machine
        if let frame { record.connection?.send([.verification(frame)]) }
    }

    /// Enters a state and tells of it; after `time` it is over.
    func enter(
        _ id: PeerID, _ state: Verification.State, _ error: EarshotError? = nil, digits: String? = nil, for time: Duration? = nil
    ) {
        guard let record = self.records[id] else { return }
        record.comparison?.timer?.cancel()
        if state != .requested { self.strangers.comparisons.places.release(id) }
        guard state != .none else {
            self.records[id]?.comparison = nil
            self.tell(.verificationChanged(self.verification(of: self.records[id] ?? record)))
            self.publishPeer(id)
            return
        }
        var comparison = Comparison(state: state, digits: digits, error: error, id: .random())
        if let time {
            comparison.expiresAt = self.now.addingTimeInterval(time / .seconds(1))
            comparison.timer = self.schedule(.comparison(id, comparison.id), after: time)
        }
        self.records[id]?.comparison = comparison
        self.tell(.verificationChanged(self.verification(of: self.records[id] ?? record)))
        self.publishPeer(id)
    }

    /// Lets what waits wait for that long from now on, where that is longer.
    private func extend(_ comparison: Comparison, with id: PeerID, to time: Duration) {
        let latest = self.now.addingTimeInterval(time / .seconds(1))
        guard comparison.expiresAt.map({ $0 < latest }) ?? false else { return }
        comparison.timer?.cancel()
        let timer = self.schedule(.comparison(id, comparison.id), after: time)
        self.records[id]?.comparison?.timer = timer
        self.records[id]?.comparison?.expiresAt = latest
        if let record = self.records[id] { self.tell(.verificationChanged(self.verification(of: record))) }
    }

    func verification(of record: PeerRecord) -> Verification {
        let comparison = record.comparison
        return Verification(
            peerID: record.id, peerName: record.name, state: comparison?.state ?? .none, digits: comparison?.digits,
            error: comparison?.error?.code, errorMessage: comparison?.error?.message, expiresAt: comparison?.expiresAt)
    }

    // MARK: What is remembered

    /// A person says that the digits differ: on disk when this returns.
    private func keepMismatch(_ id: PeerID) async throws(EarshotError) {
        try await self.decide {
            guard let record = self.records[id] else { return .success(StoreWork.Decision(changes: [])) }
            var stored = self.storedPeer(record)
            stored.noteMismatch()
            return .success(StoreWork.Decision(changes: [.putPeer(stored), .removeSession(with: id)]) { self.adoptMismatch(id) })
        }
    }

    /// The peer was caught at it.
    private func rememberMismatch(_ id: PeerID) {
        self.adoptMismatch(id)
        self.keepPeer(id, andSession: true)
    }

    private func adoptMismatch(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        var stored = self.storedPeer(record)
        stored.noteMismatch()
        self.records[id]?.stored = stored
        self.keepSpokenTLS(stored)
        self.sessionEnded(id, tellPeer: true)
        self.scheduleTrustExpiry(id)
        self.publishPeer(id)
    }
}

extension StoredPeer {
    /// The digits differed: whoever it is, it is not trusted.
    fileprivate mutating func noteMismatch() {
        self.isDecided = true
        self.verified = .mismatched
        if self.trust == .trusted { self.trust = .unknown }
        self.trustedUntil = nil
    }
}
