import EarshotWire
import OrderedCollections

/// The comparison of digits, in which two users verify each other's keys.
///
/// Digits are shown only after a user on each side has asked for them. A comparison is bound to the connection's transcript. While it waits
/// for the other side, it continues on the next connection. While it exchanges nonces, it fails with its connection.
extension NodeCore {
    // MARK: Requests by users

    mutating func verify(_ name: String, timeout: Duration?, _ call: CallID) {
        do throws(EarshotError) {
            guard !self.isStopping else { throw .stopping }
            let id = try self.resolvePeer(name)
            guard let record = self.records[id] else { throw .unseen(id) }
            guard record.trust != .blocked else { throw .blocked(record.name) }
            var timeout = timeout ?? EarshotLimits.comparisonTime
            if timeout <= .zero { timeout = EarshotLimits.comparisonTime }
            timeout = min(timeout, WireLimits.comparisonTime)
            if record.comparing.state == .waiting {
                self.extendComparison(with: id, to: timeout)
                return self.answer(call, .verification(self.verification(of: id)))
            }
            if let pause = self.comparisonAttempts.pause(for: id, at: self.now.monotonic) {
                let seconds = pause.components.seconds + 1
                throw EarshotError(
                    .busy, "digits were compared a moment ago; wait \(seconds) s before the next attempt with \(record.name)")
            }
            self.enter(id, .waiting, for: timeout)
            self.beginComparison(id)
            self.records[id]?.reach.forgetFailures()
            self.ensureConnection(id, now: true)
            self.redialConfigured(id, after: .zero)
            self.answer(call, .verification(self.verification(of: id)))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Returns the state of the comparison with a peer.
    /// - Throws: as ``peer(_:)``.
    package func verification(_ name: String) throws(EarshotError) -> Verification {
        let id = try self.resolvePeer(name)
        guard self.records[id] != nil else { throw .unknown(name) }
        return self.verification(of: id)
    }

    mutating func endVerification(_ name: String, mismatch: Bool, _ call: CallID) {
        do throws(EarshotError) {
            let id = try self.resolvePeer(name)
            guard let record = self.records[id] else { throw .unknown(name) }
            let state = record.comparing.state
            if mismatch {
                guard state == .ready else {
                    throw EarshotError(.conflict, "there are no digits of \(record.name) that could differ", remedy: .verify)
                }
                guard !self.isStopping else { throw .stopping }
                return self.decide(.mismatch(id, call))
            }
            self.giveUpComparison(with: id)
            self.answer(call, .verification(self.verification(of: id)))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    // MARK: Exchange

    /// Begins or answers an exchange, if a user here has asked for it and the connection will stay. If both sides dial at once, one
    /// connection supersedes the other, and an exchange on the latter would be lost.
    mutating func beginComparison(_ id: PeerID) {
        guard let record = self.records[id], record.comparing.state == .waiting, let link = record.connection,
            !self.isDialling(record), var machine = record.comparing.machine
        else { return }
        let nonce = (0..<WireLimits.verificationPart).map { _ in UInt8.random(in: .min ... .max, using: &self.random) }
        let action = machine.start(id: self.fresh(), nonce: nonce)
        self.records[id]?.comparing.exchange(machine)
        switch action {
        case .send(let frame):
            self.send(.verification(frame), on: link)
            guard machine.stage == .exchanging else { return }
            self.comparisonAttempts.note(id, at: self.now.monotonic)
            self.set(.comparisonStep(id, frame.id), after: EarshotLimits.comparisonStepTime)
        case .alreadyUnderWay: break
        }
    }

    mutating func verificationCame(_ frame: VerificationFrame, from id: PeerID) {
        guard let record = self.records[id], let link = record.connection, var machine = record.comparing.machine else { return }
        let action = machine.received(frame)
        self.records[id]?.comparing.exchange(machine)
        switch action {
        case .requested: self.comparisonRequested(by: id)
        case .givesWay(let end):
            self.send(.verification(end), on: link)
            self.beginComparison(id)
        case .reveal(let reveal, let digits):
            self.comparisonAttempts.note(id, at: self.now.monotonic)
            self.send(.verification(reveal), on: link)
            self.enter(id, .ready, digits: digits, for: EarshotLimits.comparisonShownTime)
        case .show(let digits): self.enter(id, .ready, digits: digits, for: EarshotLimits.comparisonShownTime)
        case .ended(let reason): self.comparisonEnded(by: id, reason)
        case .ignore: break
        case .falseReveal(let error):
            self.log(Notice(.warning, "a peer has tried to choose the digits of a comparison", ["peer": id]))
            self.emit(.close(link, error.refusal))
            self.noteMismatch(of: id)
            self.keepPeer(id, andSession: true)
            let words = "\(record.name) has revealed another number than it had committed to; do not trust it"
            self.enter(id, .mismatched, EarshotError(.protocolViolation, words))
        case .violation(let error): self.emit(.close(link, error.refusal))
        }
    }

    private mutating func comparisonRequested(by id: PeerID) {
        guard let record = self.records[id] else { return }
        // A user here has asked too, and the comparison only waits for the connection that stays.
        guard record.comparing.state != .waiting else { return self.beginComparison(id) }
        // With `paired_only`, a stranger's request is not published. It is answered when a user here asks for a comparison with that peer.
        guard !self.settings.pairedOnly || record.trust == .trusted || record.sessionID != nil else { return }
        guard self.mayCompare(record) else { return self.endAttempt(id, .busy) }
        self.enter(id, .requested, for: WireLimits.comparisonTime)
    }

    /// Whether the request of a peer may wait for a user here. Strangers share few places; for other peers, only the rate is limited.
    private mutating func mayCompare(_ record: PeerRecord) -> Bool {
        let isStranger =
            record.trust != .trusted && (record.sessionID == nil || record.standing.stored?.isDecided != true)
        let origin = record.link.current?.facts.origin ?? []
        guard self.strangers.comparisons.rate.admit(record.id, from: isStranger ? origin : nil, at: self.now.monotonic) else {
            return false
        }
        guard isStranger else { return true }
        switch self.strangers.comparisons.places.admit(record.id, from: origin) {
        case .admitted: return true
        case .busy: return false
        case .replaced(let other, _):
            self.endAttempt(other, .busy)
            self.enter(other, .failed, EarshotError(.busy, "too many untrusted peers want to compare digits; another has its place"))
            return true
        }
    }

    /// Cancels a comparison on this side.
    mutating func giveUpComparison(with id: PeerID) {
        guard let state = self.records[id]?.comparing.state, [.requested, .waiting, .ready].contains(state) else { return }
        self.endAttempt(id, .givenUp)
        self.enter(id, .cancelled)
    }

    private mutating func comparisonEnded(by id: PeerID, _ reason: VerificationFrame.EndReason) {
        guard let record = self.records[id], record.comparing.shown != nil else { return }
        let name = record.name
        switch (record.comparing.state, reason) {
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

    /// Continues a waiting comparison on a new connection.
    mutating func resumeComparison(_ id: PeerID, on facts: LinkFacts) {
        let machine = VerificationStateMachine(localID: self.id, peerID: id, transcript: facts.peer.transcript)
        self.records[id]?.comparing.exchange(machine)
        self.beginComparison(id)
    }

    /// Ends the exchange after its connection was lost, and with it the transcript.
    mutating func interruptComparison(_ id: PeerID) {
        guard let record = self.records[id], let machine = record.comparing.machine else { return }
        self.records[id]?.comparing.exchange(nil)
        switch (record.comparing.state, machine.stage) {
        case (.waiting, .exchanging):
            self.enter(id, .failed, EarshotError(.unavailable, "the connection was lost; compare the digits again"))
        case (.requested, _): self.enter(id, .cancelled, EarshotError(.notConnected, "\(record.name) has gone"))
        case (_, .idle), (_, .requested), (_, .waiting), (_, .exchanging), (_, .shown): break
        }
    }

    /// Fails a waiting comparison whose peer cannot be reached, for a reason that another dial would not change.
    mutating func failComparison(with id: PeerID, _ error: EarshotError) {
        guard self.records[id]?.comparing.state == .waiting else { return }
        self.enter(id, .failed, error)
    }

    // MARK: Expiry

    /// Ends a comparison whose state has expired.
    mutating func comparisonExpired(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        switch record.comparing.state {
        case .waiting:
            self.endAttempt(id, .timedOut)
            let why =
                record.connection == nil
                ? record.reach.lastError.map { ": \($0.message)" } ?? "" : "; the comparison has to be started there too"
            self.enter(id, .timedOut, EarshotError(.timedOut, "\(record.name) has not asked for it in time\(why)"))
        case .requested, .ready:
            self.endAttempt(id, .timedOut)
            self.enter(id, .none)
        case .none, .matched, .mismatched, .cancelled, .timedOut, .failed: break
        }
    }

    /// Ends an exchange in which the peer has asked but did not reveal its nonce in time.
    mutating func comparisonStepExpired(_ id: PeerID, _ attempt: VerificationID) {
        guard let record = self.records[id], let machine = record.comparing.machine, machine.stage == .exchanging,
            machine.isAt(attempt)
        else { return }
        self.endAttempt(id, .timedOut)
        self.enter(id, .timedOut, EarshotError(.timedOut, "\(record.name) has not answered in time"))
    }

    // MARK: State

    private mutating func endAttempt(_ id: PeerID, _ reason: VerificationFrame.EndReason) {
        guard let frame = self.records[id]?.comparing.endExchange(reason) else { return }
        self.send(.verification(frame), on: self.records[id]?.connection)
    }

    /// Enters a state and publishes it. With `time`, the state expires after it.
    mutating func enter(
        _ id: PeerID, _ state: Verification.State, _ error: EarshotError? = nil, digits: String? = nil, for time: Duration? = nil
    ) {
        guard self.records[id] != nil else { return }
        self.deadlines.cancel(.comparison(id))
        if state != .requested { self.strangers.comparisons.places.release(id) }
        self.records[id]?.comparing.show(state, digits: digits, error, for: time, at: self.now)
        if let time { self.set(.comparison(id), after: time) }
        self.publish(.verificationChanged(self.verification(of: id)))
        self.publishPeer(id)
    }

    /// Extends a waiting comparison to end after `time` from now, if that is later than before.
    private mutating func extendComparison(with id: PeerID, to time: Duration) {
        guard let deadline = self.records[id]?.comparing.shown?.deadline, deadline < self.now.monotonic + time else { return }
        self.set(.comparison(id), after: time)
        self.records[id]?.comparing.extend(by: time, at: self.now)
        self.publish(.verificationChanged(self.verification(of: id)))
    }

    func verification(of id: PeerID) -> Verification {
        let record = self.records[id]
        let shown = record?.comparing.shown
        return Verification(
            peerID: id, peerName: record?.name ?? id.description, state: shown?.state ?? .none, digits: shown?.digits,
            error: shown?.error?.code, errorMessage: shown?.error?.message, end: shown?.end)
    }

    // MARK: Stored results

    /// Applies a user's report that the digits differ, after it was written.
    mutating func digitsDiffer(from id: PeerID) {
        self.makeRecord(id)
        guard let name = self.records[id]?.name else { return }
        self.noteMismatch(of: id)
        self.endAttempt(id, .mismatch)
        let words = "the digits differ: a man in the middle is on the path to \(name), or the key is another's"
        self.enter(id, .mismatched, EarshotError(.identityMismatch, words))
    }

    private mutating func noteMismatch(of id: PeerID) {
        guard let record = self.records[id] else { return }
        var stored = self.storedPeer(record)
        stored.noteMismatch()
        self.records[id]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(id, .keep) }
        self.endSession(with: id, tellPeer: true)
        self.trustEnded(id)
        self.scheduleTrustExpiry(id)
        self.publishPeer(id)
    }
}

extension StoredPeer {
    /// Marks the peer as mismatched and revokes any trust in it.
    mutating func noteMismatch() {
        self.isDecided = true
        self.verified = .mismatched
        if self.trust == .trusted { self.trust = .unknown }
        self.trustedUntil = nil
    }
}
