import EarshotWire
import OrderedCollections

/// The writing of decisions: each is computed when it reaches the head of the queue, and memory is changed once it is on disk.
extension NodeCore {
    /// Queues a decision. The peer that has caused it is charged until it is on disk.
    mutating func decide(_ decision: Decision) {
        self.decisions.append(decision, hold: self.hold(EarshotLimits.storeWorkCharge))
    }

    /// Queues a write of a peer, and of its session if requested, as they are in memory when the write begins. Does nothing if the same
    /// write is queued already.
    mutating func keepPeer(_ id: PeerID, andSession: Bool = false) {
        let decision = Decision.keep(id, andSession: andSession, .none)
        guard !self.decisions.contains(decision) else { return }
        self.decide(decision)
    }

    /// Makes the next decisions, up to the first that has to be written.
    mutating func advanceDecisions() {
        while let entry = self.decisions.next() {
            let (outcome, operations): (DecisionOutcome, [StoreOperation])
            do throws(EarshotError) {
                (outcome, operations) = try self.make(entry.decision)
            } catch {
                self.conclude(entry.decision, .failure(error))
                self.release(entry.hold)
                continue
            }
            let id = self.nextCommit()
            self.decisions.begin(entry, outcome, writing: operations, as: id)
            guard operations.isEmpty else { return self.emit(.commit(id, operations)) }
            self.committed(id, nil)
        }
    }

    mutating func committed(_ id: CommitID, _ error: EarshotError?) {
        guard !self.transferCommitted(id, error), let ended = self.decisions.end(id) else { return }
        if case .agreement(let invitation) = ended.outcome {
            self.invitations.setDeciding(invitation.id, false)
            if error != nil { _ = self.records[invitation.peerID]?.session.endAgreement() }
        }
        self.noteEnd(ended, error)
        self.conclude(ended.entry.decision, error.map { .failure($0) } ?? .success(ended.outcome))
        if error == nil, let written = ended.written { self.keepRest(since: written) }
        self.release(ended.entry.hold)
    }

    /// Notes whether the data of an ended session is still on disk: the session ended in memory first, and the disk then refused the
    /// removal.
    private mutating func noteEnd(_ ended: DecisionQueue.UnderWay, _ error: EarshotError?) {
        guard let peer = ended.ending else { return }
        if error == nil {
            self.records[peer]?.session.endWritten(true)
        } else if case .keep = ended.entry.decision {
            self.records[peer]?.session.endWritten(false)
        }
    }

    /// Queues another write if facts about a peer were noted while it was being written: a proven key, or the use of TLS.
    private mutating func keepRest(since written: StoredPeer) {
        guard let stored = self.records[written.id]?.standing.stored, !stored.isSame(as: written) else { return }
        self.keepPeer(written.id)
    }

    /// Retries a failed write of a peer after a while. Memory has already changed, and without the retry an ended session would return at
    /// the next start.
    private mutating func keepLater(_ id: PeerID) {
        if !self.isStopping { self.set(.keep(id), after: EarshotLimits.keepPause) }
    }

    /// Returns the outcome and the writes of a decision, by the present state.
    private mutating func make(_ decision: Decision) throws(EarshotError) -> (DecisionOutcome, [StoreOperation]) {
        switch decision {
        case .trust(let request, let caller) where request.peer.kind == .localsend:
            let row = try self.deviceRow(request, caller)
            return (.device(row), [.putPeer(row)])
        case .trust(let request, _):
            let (change, operations) = try self.change(request)
            return (.trust(change), operations)
        case .alias(let alias, let peer, let name, _) where peer.kind == .localsend:
            let row = try self.deviceRow(peer, called: alias, named: name)
            return (.device(row), [.putPeer(row)])
        case .alias(let alias, let peer, let name, _):
            return (.alias(alias, of: peer), try self.operations(toCall: peer, alias, named: name))
        case .leave(let session, let peer, _):
            guard self.records[peer]?.sessionID == session else { throw Self.noSession(session) }
            return (.kept, [.removeSession(with: peer)])
        case .mismatch(let peer, _):
            // The record of a stranger goes with its connection, but a mismatch of its key is remembered.
            let record = self.records[peer] ?? PeerRecord(id: peer, at: self.now.wall)
            var stored = self.storedPeer(record)
            stored.noteMismatch()
            return (.mismatch(peer), [.putPeer(stored), .removeSession(with: peer)])
        case .accept(let id, let peer, let always, let acceptor):
            guard let invitation = self.invitations[id]?.invitation else {
                throw EarshotError(.notFound, "there is no invitation \(id)")
            }
            guard invitation.state == .pending else { throw self.isOver(invitation) }
            if acceptor == .sender { try self.checkSender(to: peer) }
            return (.agreement(invitation), try self.agree(to: invitation, isPerson: true, always: always))
        case .acceptBySettings(let peer):
            let (invitation, operations) = try self.agreeBySettings(with: peer)
            return (.agreement(invitation), operations)
        case .group(let decision): return try self.make(decision)
        case .keep(let peer, let andSession, _): return (.kept, self.operations(toKeep: peer, andSession: andSession))
        }
    }

    /// Returns the writes of a peer, and of its session if requested, as in memory. A row that is not in memory is removed from disk.
    private func operations(toKeep id: PeerID, andSession: Bool) -> [StoreOperation] {
        if id.kind == .localsend { return self.devices[id]?.standing.stored.map { [.putPeer($0)] } ?? [] }
        let record = self.records[id]
        var operations: [StoreOperation] = []
        let session = record?.session.session
        if andSession, session == nil || record?.session.isEndUnwritten == true { operations.append(.removeSession(with: id)) }
        if let stored = record?.standing.stored {
            operations.append(.putPeer(stored))
        } else if andSession {
            operations.append(.removePeer(id))
        }
        if andSession, let session { operations.append(.putSession(session)) }
        return operations
    }

    /// Applies a decision that is on disk. If it failed, nothing has changed.
    private mutating func conclude(_ decision: Decision, _ result: Result<DecisionOutcome, EarshotError>) {
        switch decision {
        case .trust(let request, let caller):
            if case .success(.trust(let change)) = result { self.adopt(change) }
            if case .success(.device(let row)) = result {
                self.adopt(device: row)
                if request.trust == .trusted { self.acceptWaitingOffer(of: request.peer) }
            }
            self.answer(caller, decision, result)
            if case .invitation = caller {
                self.acceptanceFailed(with: request.peer, result.error ?? EarshotError(.conflict, "a user here has blocked the peer"))
            }
        case .alias(_, let peer, _, let call):
            if case .success(.alias(let alias, _)) = result { self.adopt(alias, of: peer) }
            if case .success(.device(let row)) = result { self.adopt(device: row) }
            self.answer(call, result.answer(.peer(self.shown(peer))))
        case .leave(let session, let peer, let call):
            if case .success = result, self.records[peer]?.sessionID == session { self.endSession(with: peer, tellPeer: true) }
            self.answer(call, result.answer(.done))
        case .mismatch(let peer, let call):
            if case .success = result { self.digitsDiffer(from: peer) }
            self.answer(call, result.answer(.verification(self.verification(of: peer))))
        case .accept(let id, let peer, _, let acceptor):
            self.invitations.setDeciding(id, false)
            self.conclude(result, acceptor)
            if let error = result.error { self.acceptanceFailed(with: peer, error) }
        case .acceptBySettings(let peer):
            if let error = result.error {
                self.acceptanceFailed(with: peer, error)
                self.followSettings(of: peer, error)
            }
            self.conclude(result, .settings)
        case .keep(let peer, _, .joined(let id, let session, let wasDecided)):
            self.joined(id, session, with: peer, wasDecided: wasDecided, result.error)
        case .keep(let peer, _, .undo(let invitation, let acceptor)):
            if result.error != nil {
                // A caller that is told of the failure must not find the session on disk after a crash.
                if case .person = acceptor, !self.isStopping { return self.set(.again(decision), after: EarshotLimits.keepPause) }
                self.keepLater(peer)
            }
            let error = result.error ?? self.whyUndone(invitation)
            self.acceptanceFailed(with: peer, error)
            switch acceptor {
            case .person(let call): self.answer(call, .failure(error))
            case .sender: break
            case .settings: self.followSettings(of: peer, error)
            }
        case .group(let decision): self.conclude(decision, result)
        case .keep(let peer, _, .none): if result.error != nil { self.keepLater(peer) }
        }
    }

    /// Applies an acceptance that is on disk, or reports its failure.
    private mutating func conclude(_ result: Result<DecisionOutcome, EarshotError>, _ acceptor: Decision.Acceptor) {
        var caller: CallID?
        if case .person(let call) = acceptor { caller = call }
        switch result {
        case .failure(let error): if let caller { self.answer(caller, .failure(error)) }
        case .success(.agreement(let invitation)):
            let peer = invitation.peerID
            // Evaluated before the session exists, because the rules depend on it.
            let by = self.words(for: acceptor, of: peer)
            if let agreement = self.records[peer]?.session.endAgreement(), self.isAccepting(peer, acceptor),
                let decided = self.adopt(agreement, acceptedBy: invitation.id, with: peer)
            {
                self.log(
                    Notice(
                        .info, "an invitation was accepted",
                        ["peer": peer, "name": decided.peerName, "invitation": decided.id, "by": by]))
                if let caller { self.answer(caller, .invitation(decided)) }
                return
            }
            // The invitation, or the trust in the peer, ended while the disk was busy. An acceptance that is reported as failed must change
            // nothing: neither session nor trust.
            self.decide(.keep(peer, andSession: true, .undo(invitation, acceptor)))
        case .success: break
        }
    }
}

extension NodeCore {
    /// Returns the rule or user that has admitted a peer, for the log.
    private func words(for acceptor: Decision.Acceptor, of peer: PeerID) -> String {
        switch acceptor {
        case .person(_): "a user"
        case .sender: "a user who sends to the peer"
        case .settings: self.records[peer].map { self.policy(of: $0).invitation().rule } ?? "the settings"
        }
    }
}

extension Result where Success == DecisionOutcome, Failure == EarshotError {
    fileprivate var error: EarshotError? {
        if case .failure(let error) = self { return error }
        return nil
    }

    fileprivate func answer(_ answer: Answer) -> Answer { self.error.map { .failure($0) } ?? answer }
}
