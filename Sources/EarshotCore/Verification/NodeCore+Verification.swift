import EarshotWire
import OrderedCollections

/// Two persons compare digits, so that each knows whose key the other's is.
///
/// Digits are shown only once a person on each side has asked. What a comparison is bound to is the connection's transcript: one that is
/// waited for goes on with the next connection, one whose nonces are under way fails with its connection.
extension NodeCore {
    // MARK: What a person asks for

    mutating func verify(_ name: String, timeout: Duration?, _ call: CallID) {
        do throws(EarshotError) {
            guard !self.isStopping else { throw .stopping }
            let id = try self.resolve(name)
            guard let record = self.records[id] else { throw .unseen(id) }
            guard record.trust != .blocked else { throw .blocked(record.name) }
            var timeout = timeout ?? EarshotLimits.comparisonTime
            if timeout <= .zero { timeout = EarshotLimits.comparisonTime }
            timeout = min(timeout, EarshotLimits.comparisonTimeLimit)
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

    /// How the comparison with a peer stands.
    /// - Throws: as ``peer(_:)``.
    package func verification(_ name: String) throws(EarshotError) -> Verification {
        let id = try self.resolve(name)
        guard self.records[id] != nil else { throw .unknown(name) }
        return self.verification(of: id)
    }

    mutating func endVerification(_ name: String, mismatch: Bool, _ call: CallID) {
        do throws(EarshotError) {
            let id = try self.resolve(name)
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

    // MARK: The exchange

    /// Begins, or answers, where a person here has asked and there is a connection that stays: where both sides dial at once, one of the two
    /// supersedes the other, and an exchange on that one would be lost with it.
    mutating func beginComparison(_ id: PeerID) {
        guard let record = self.records[id], record.comparing.state == .waiting, let link = record.connection,
            !self.isDialling(record), var machine = record.comparing.machine
        else { return }
        let nonce = (0..<WireLimits.verificationPart).map { _ in UInt8.random(in: .min ... .max, using: &self.random) }
        let action = machine.start(id: self.fresh(), nonce: nonce)
        self.records[id]?.comparing.machine = machine
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
        self.records[id]?.comparing.machine = machine
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
        // Asked here too, and only waiting for the connection that stays.
        guard record.comparing.state != .waiting else { return self.beginComparison(id) }
        // A stranger that no person is to see is answered once one here asks for it, and not published before.
        guard !self.settings.pairedOnly || record.trust == .trusted || record.sessionID != nil else { return }
        guard self.mayCompare(record) else { return self.endAttempt(id, .busy) }
        self.enter(id, .requested, for: EarshotLimits.comparisonTimeLimit)
    }

    /// Whether the request of a peer may wait for a person here: strangers wait in few places, others do not ask too often and no more.
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
            self.enter(other, .failed, EarshotError(.busy, "too many strangers want to compare digits, and another one has its place"))
            return true
        }
    }

    /// What was to be compared is given up here.
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

    /// The peer is connected anew: what is waited for goes on.
    mutating func resumeComparison(_ id: PeerID, on facts: LinkFacts) {
        let machine = VerificationStateMachine(localID: self.id, peerID: id, transcript: facts.peer.transcript)
        self.records[id]?.comparing.machine = machine
        self.beginComparison(id)
    }

    /// The connection is gone, and with it the transcript.
    mutating func interruptComparison(_ id: PeerID) {
        guard let record = self.records[id], let machine = record.comparing.machine else { return }
        self.records[id]?.comparing.machine = nil
        switch (record.comparing.state, machine.stage) {
        case (.waiting, .exchanging):
            self.enter(id, .failed, EarshotError(.unavailable, "the connection was lost; compare the digits again"))
        case (.requested, _): self.enter(id, .cancelled, EarshotError(.notConnected, "\(record.name) has gone"))
        case (_, .idle), (_, .requested), (_, .waiting), (_, .exchanging), (_, .shown): break
        }
    }

    /// It cannot be reached in a way that trying again would not change.
    mutating func failComparison(with id: PeerID, _ error: EarshotError) {
        guard self.records[id]?.comparing.state == .waiting else { return }
        self.enter(id, .failed, error)
    }

    // MARK: Time

    /// The time of a state is over.
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

    /// A peer that has asked, and then does not reveal.
    mutating func comparisonStepExpired(_ id: PeerID, _ attempt: VerificationID) {
        guard let record = self.records[id], let machine = record.comparing.machine, machine.stage == .exchanging,
            machine.isAt(attempt)
        else { return }
        self.endAttempt(id, .timedOut)
        self.enter(id, .timedOut, EarshotError(.timedOut, "\(record.name) has not answered in time"))
    }

    // MARK: State

    private mutating func endAttempt(_ id: PeerID, _ reason: VerificationFrame.EndReason) {
        guard let frame = self.records[id]?.comparing.machine?.end(reason) else { return }
        self.send(.verification(frame), on: self.records[id]?.connection)
    }

    /// Enters a state and publishes it; after `time` it is over.
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

    /// Lets what waits wait for that long from now on, where that is longer.
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

    // MARK: What is remembered

    /// A person says that the digits differ, and that is on disk.
    mutating func digitsDiffer(from id: PeerID) {
        self.makeRecord(id)
        guard let name = self.records[id]?.name else { return }
        self.noteMismatch(of: id)
        self.endAttempt(id, .mismatch)
        let words = "the digits differ: somebody is between this machine and \(name), or it is another"
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
    /// The digits differed: whichever peer it is, it is not trusted.
    mutating func noteMismatch() {
        self.isDecided = true
        self.verified = .mismatched
        if self.trust == .trusted { self.trust = .unknown }
        self.trustedUntil = nil
    }
}
