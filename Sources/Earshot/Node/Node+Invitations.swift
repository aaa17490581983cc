public import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Asking a peer to join a session, and being asked (design section 4).
extension Node {
    // MARK: Listing

    /// Invitations in the order in which they were made; the pending ones alone unless `all`.
    public func invitations(all: Bool) -> [Invitation] {
        self.invitations.values.map(\.invitation).filter { all || $0.state == .pending }
    }

    /// - Throws: `not-found`.
    public func invitation(_ id: InvitationID) throws(EarshotError) -> Invitation {
        guard let record = self.invitations[id] else {
            throw EarshotError(.notFound, "there is no invitation \(id)")
        }
        return record.invitation
    }

    /// Waits until an invitation has its final state; its timeout bounds the wait.
    /// - Throws: `not-found`.
    public func decided(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        let invitation = try self.invitation(id)
        guard invitation.state == .pending, !self.isStopping else { return invitation }
        return await withCheckedContinuation { self.invitations[id]?.waiters.append($0) }
    }

    func pendingInvitation(with peer: PeerID, _ direction: Direction) -> InvitationID? {
        self.invitations.values.last {
            $0.invitation.peerID == peer && $0.invitation.direction == direction && $0.invitation.state == .pending
        }?.invitation.id
    }

    // MARK: Asking

    /// Asks a peer to join a session; goes on resolving and dialling until the timeout (30 s by default, at most a day).
    ///
    /// With a session already there the answer is an accepted invitation that names it; an invitation from that very peer that
    /// waits for a decision is accepted by this.
    /// - Throws: `invalid-parameter` for a context over 8 KiB, `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer.
    public func invite(_ name: String, context: [UInt8], timeout: Duration?) async throws(EarshotError) -> Invitation {
        guard context.count <= WireLimits.invitationContext else {
            throw EarshotError(
                .invalidParameter, "an invitation's context has at most \(WireLimits.invitationContext) bytes, not \(context.count)")
        }
        guard !self.isStopping else { throw Self.stopping }
        let id = try self.resolve(name)
        guard let record = self.records[id] else {
            throw EarshotError(.unknownPeer, "no peer with the id \(id) has been seen")
        }
        guard record.trust != .blocked else {
            throw EarshotError(.forbidden, "\(record.name) is blocked; run earshot unblock first")
        }
        if let session = record.session {
            return self.remember(
                self.makeInvitation(.outgoing, id: .random(), peer: id, context: context, timeout: .zero, accepted: session.id))
        }
        if let incoming = self.pendingInvitation(with: id, .incoming) {
            return try await self.respond(to: incoming, .accept, always: false)
        }
        if let pending = self.pendingInvitation(with: id, .outgoing), let record = self.invitations[pending] {
            return record.invitation
        }
        return self.beginInvitation(to: id, context: context, timeout: timeout)
    }

    func beginInvitation(to id: PeerID, context: [UInt8], timeout: Duration?) -> Invitation {
        var timeout = timeout ?? self.configuration.invitationTimeout
        if timeout <= .zero { timeout = self.configuration.invitationTimeout }
        timeout = min(timeout, EarshotLimits.invitationTimeout)
        let invitation = self.remember(self.makeInvitation(.outgoing, id: .random(), peer: id, context: context, timeout: timeout))
        self.invitations[invitation.id]?.expiry = self.schedule(.invitation(invitation.id), after: timeout)
        self.sendInvitations(to: id)
        self.records[id]?.redial.attempts = 0
        self.ensureConnection(id, now: true)
        self.redialConfigured(id, after: .zero)
        return invitation
    }

    /// Sends what is pending for a peer on its present connection, once a connection.
    func sendInvitations(to id: PeerID) {
        guard let connection = self.records[id]?.connection, let pending = self.pendingInvitation(with: id, .outgoing),
            let record = self.invitations[pending], record.sentOn != ObjectIdentifier(connection)
        else { return }
        let left = max(1, record.invitation.expiresAt.timeIntervalSince(self.now) * 1000)
        self.invitations[pending]?.sentOn = ObjectIdentifier(connection)
        connection.send([
            .invite(
                Invite(
                    id: pending, timeoutMilliseconds: UInt32(min(left, Double(WireLimits.invitationTimeoutMilliseconds))),
                    context: record.invitation.context))
        ])
    }

    /// Takes an invitation back; the peer is told.
    /// - Throws: `not-found`; `conflict` where it is decided already or is not ours.
    public func withdraw(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        let invitation = try self.invitation(id)
        guard invitation.direction == .outgoing else {
            throw EarshotError(.conflict, "the invitation \(id) is another peer's; reject it instead")
        }
        guard invitation.state == .pending else {
            throw EarshotError(.conflict, "the invitation \(id) is \(invitation.state.rawValue) already")
        }
        return self.resolveInvitation(id, .cancelled, withdrawing: .withdrawn) ?? invitation
    }

    // MARK: Deciding

    /// A person's answer to an incoming invitation; on disk before the peer hears of it.
    /// - Throws: `not-found`; `conflict` where it is decided already; `storage` where the decision cannot be kept.
    public func respond(to id: InvitationID, _ decision: Invitation.Decision, always: Bool) async throws(EarshotError) -> Invitation {
        let invitation = try self.invitation(id)
        guard invitation.direction == .incoming else {
            throw EarshotError(.conflict, "the invitation \(id) is this machine's own; withdraw it instead")
        }
        guard invitation.state == .pending, self.invitations[id]?.isDeciding == false else {
            throw EarshotError(.conflict, "the invitation \(id) is \(invitation.state.rawValue) already")
        }
        switch decision {
        case .accept: return try await self.accept(invitation, always: always)
        case .reject: return self.resolveInvitation(id, .declined, answering: .declined) ?? invitation
        case .block:
            self.invitations[id]?.isDeciding = true
            defer { self.invitations[id]?.isDeciding = false }
            _ = try await self.setTrust(.blocked, for: invitation.peerID.description)
            return self.invitations[id]?.invitation ?? invitation
        }
    }

    private func accept(_ invitation: Invitation, always: Bool) async throws(EarshotError) -> Invitation {
        let id = invitation.id
        let peer = invitation.peerID
        let session = StoredSession(id: .random(), members: [self.id, peer], createdAt: self.now)
        let withdrawn = EarshotError(.conflict, "the invitation of \(invitation.peerName) was withdrawn meanwhile")
        self.invitations[id]?.isDeciding = true
        defer { self.invitations[id]?.isDeciding = false }
        try await self.decide {
            guard let record = self.records[peer] else {
                return .failure(EarshotError(.notConnected, "\(invitation.peerName) is gone"))
            }
            guard self.invitations[id]?.invitation.state == .pending else { return .failure(withdrawn) }
            if always, let mismatch = self.mismatch(of: record) { return .failure(mismatch) }
            var stored = self.storedPeer(record)
            if always { stored.trustForGood() }
            // One transaction: a session without its peer's trust would be half of what was decided.
            return .success(
                StoreWork.Decision(changes: [.putPeer(stored), .putSession(session)]) {
                    self.adopt(session, acceptedBy: id, with: peer, always: always)
                })
        }
        guard let decided = self.invitations[id]?.invitation, decided.sessionID == session.id else { throw withdrawn }
        return decided
    }

    private func adopt(_ session: StoredSession, acceptedBy id: InvitationID, with peer: PeerID, always: Bool) {
        if let record = self.records[peer] {
            var stored = self.storedPeer(record)
            if always { stored.trustForGood() }
            self.records[peer]?.stored = stored
            self.keepSpokenTLS(stored)
        }
        guard self.resolveInvitation(id, .accepted, session: session.id, answering: .accepted(session.id)) != nil else {
            // Withdrawn while the disk was busy: there is nobody to have a session with.
            self.persist([.removeSession(session.id)]) { _ in }
            return
        }
        self.adopt(session, with: peer, attached: true)
        self.ensureConnection(peer, now: true)
    }

    /// Blocking somebody declines what they asked.
    func declineInvitations(of id: PeerID) {
        for pending in self.invitations.values where pending.invitation.peerID == id && pending.invitation.state == .pending {
            switch pending.invitation.direction {
            case .incoming: self.resolveInvitation(pending.invitation.id, .declined, answering: .declined)
            case .outgoing: self.resolveInvitation(pending.invitation.id, .cancelled, withdrawing: .withdrawn)
            }
        }
    }

    // MARK: Frames

    func received(_ invite: Invite, from id: PeerID) {
        guard let record = self.records[id], let connection = record.connection else { return }
        if let known = self.invitations[invite.id] {
            self.receivedAgain(known, from: id, on: connection)
            return
        }
        if let session = record.session {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(session.id)))])
            return
        }
        if let own = self.pendingInvitation(with: id, .outgoing) {
            // Crossing: of the two the lower id's stands. Where that is ours and it is out, the peer will answer it.
            let isSent = self.invitations[own]?.sentOn == ObjectIdentifier(connection)
            guard !(isSent && self.id < id) else { return }
        }
        let pending = self.invitations.values.filter { $0.invitation.direction == .incoming && $0.invitation.state == .pending }
        guard pending.count < EarshotLimits.pendingInvitations, !pending.contains(where: { $0.invitation.peerID == id }) else {
            connection.send([.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy))])
            return
        }
        self.expireTrust(id)
        var outcome = self.policy(of: self.records[id] ?? record).invitation().outcome
        if outcome == .accept, self.isFull(forStranger: self.records[id] ?? record) { outcome = .ask }
        if outcome == .hide {
            // As a blocked peer: it hears what a person's rejection sounds like, and nobody here hears of it.
            let delay = Int64.random(in: EarshotLimits.blockedAnswerMilliseconds)
            self.schedule(.blockedAnswer(invite.id, connection), after: .milliseconds(delay))
            return
        }
        let timeout = Duration.milliseconds(Int64(invite.timeoutMilliseconds))
        let invitation = self.remember(self.makeInvitation(.incoming, id: invite.id, peer: id, context: invite.context, timeout: timeout))
        self.invitations[invite.id]?.expiry = self.schedule(.invitation(invite.id), after: timeout)
        self.tell(.invitationReceived(invitation))
        switch outcome {
        case .ask, .hide: break
        case .reject: self.resolveInvitation(invite.id, .declined, answering: .declined)
        case .accept: self.acceptByPolicy(invitation)
        }
    }

    /// Whether settings alone do not let one more peer in that nobody trusts.
    private func isFull(forStranger record: PeerRecord) -> Bool {
        guard record.trust != .trusted else { return false }
        let strangers = self.records.values.count { $0.session != nil && $0.trust != .trusted }
        guard strangers >= EarshotLimits.strangersSessions else { return false }
        self.logger.warning(
            "too many sessions with peers that nobody trusts; a person has to accept the next",
            metadata: ["peer": "\(record.id)", "name": "\(record.name)", "limit": "\(EarshotLimits.strangersSessions)"])
        return true
    }

    private func acceptByPolicy(_ invitation: Invitation) {
        self.spawn { [weak self] in
            do throws(EarshotError) {
                _ = try await self?.respond(to: invitation.id, .accept, always: false)
            } catch {
                await self?.couldNotAccept(invitation, error)
            }
        }
    }

    private func couldNotAccept(_ invitation: Invitation, _ error: EarshotError) {
        guard self.invitations[invitation.id]?.invitation.state == .pending else { return }
        self.logger.error("cannot accept an invitation", metadata: ["peer": "\(invitation.peerID)", "error": "\(error)"])
        self.resolveInvitation(invitation.id, .failed, error: error, answering: .declined)
    }

    /// The same invitation on a new connection: the inviter has not heard what became of it.
    private func receivedAgain(_ known: InvitationRecord, from id: PeerID, on connection: Connection) {
        guard known.invitation.direction == .incoming, known.invitation.peerID == id else {
            // Somebody else's: what it asks for is nothing that can be answered.
            return
        }
        switch known.invitation.state {
        case .pending: break
        case .accepted:
            if let session = known.invitation.sessionID, self.records[id]?.session?.id == session {
                connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .accepted(session)))])
            } else {
                connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .declined))])
            }
        case .declined, .timedOut, .cancelled, .failed:
            connection.send([.inviteAnswer(InviteAnswer(id: known.invitation.id, decision: .declined))])
        }
    }

    func received(_ answer: InviteAnswer, from id: PeerID) {
        guard let record = self.invitations[answer.id], record.invitation.peerID == id, record.invitation.direction == .outgoing,
            record.invitation.state == .pending
        else { return }
        switch answer.decision {
        case .accepted(let session): self.invitationAccepted(answer.id, session: session)
        case .declined: self.resolveInvitation(answer.id, .declined)
        case .busy:
            self.resolveInvitation(
                answer.id, .failed,
                error: EarshotError(.busy, "\(record.invitation.peerName) has too many invitations waiting; try again later"))
        }
    }

    func received(_ withdraw: InviteWithdraw, from id: PeerID) {
        guard let record = self.invitations[withdraw.id], record.invitation.peerID == id, record.invitation.direction == .incoming,
            record.invitation.state == .pending
        else { return }
        switch withdraw.reason {
        case .withdrawn: self.resolveInvitation(withdraw.id, .cancelled)
        case .timedOut: self.resolveInvitation(withdraw.id, .timedOut)
        }
    }

    /// Our invitation was accepted: the session is told of once it is on disk here too.
    func invitationAccepted(_ id: InvitationID, session sessionID: SessionID) {
        guard let pending = self.invitations[id], !pending.isDeciding, let record = self.records[pending.invitation.peerID] else { return }
        let peer = pending.invitation.peerID
        let session = StoredSession(id: sessionID, members: [self.id, peer], createdAt: self.now)
        let stored = self.storedPeer(record)
        self.invitations[id]?.isDeciding = true
        self.records[peer]?.stored = stored
        self.keepSpokenTLS(stored)
        self.adopt(session, with: peer, attached: true)
        self.keepPeer(peer, and: [.putSession(session)]) { result in
            switch result {
            case .success: self.resolveInvitation(id, .accepted, session: sessionID)
            case .failure(let error):
                self.sessionEnded(peer, tellPeer: true)
                self.resolveInvitation(id, .failed, error: error)
            }
        }
    }

    // MARK: Ends

    func invitationExpired(_ id: InvitationID) {
        guard let record = self.invitations[id], record.invitation.state == .pending else { return }
        guard !record.isDeciding else {
            // Its answer waits for the disk: where that fails, it is over.
            self.invitations[id]?.expiry = self.schedule(.invitation(id), after: .seconds(1))
            return
        }
        let why = self.records[record.invitation.peerID].flatMap { $0.connection == nil ? $0.redial.lastError : nil }
        self.resolveInvitation(
            id, .timedOut, error: why.map { EarshotError(.timedOut, "\(record.invitation.peerName) could not be reached: \($0.message)") },
            withdrawing: record.invitation.direction == .outgoing ? .timedOut : nil)
    }

    func failInvitations(to id: PeerID, _ error: EarshotError) {
        if let pending = self.pendingInvitation(with: id, .outgoing) { self.resolveInvitation(pending, .failed, error: error) }
    }

    /// Gives an invitation its final state and tells everyone: the peer (by an answer or a withdrawal), waiters, readers of events.
    @discardableResult
    private func resolveInvitation(
        _ id: InvitationID, _ state: Invitation.State, session: SessionID? = nil, error: EarshotError? = nil,
        answering answer: InviteAnswer.Decision? = nil, withdrawing reason: InviteWithdraw.Reason? = nil
    ) -> Invitation? {
        guard var record = self.invitations[id], record.invitation.state == .pending else { return nil }
        record.invitation.state = state
        record.invitation.sessionID = session
        record.invitation.error = error?.code
        record.invitation.errorMessage = error?.message
        record.expiry?.cancel()
        record.expiry = nil
        let waiters = record.waiters
        record.waiters = []
        record.isDeciding = false
        self.invitations[id] = record
        let connection = self.records[record.invitation.peerID]?.connection
        if let answer { connection?.send([.inviteAnswer(InviteAnswer(id: id, decision: answer))]) }
        if let reason { connection?.send([.inviteWithdraw(InviteWithdraw(id: id, reason: reason))]) }
        self.tell(.invitationResolved(record.invitation))
        for waiter in waiters { waiter.resume(returning: record.invitation) }
        if record.invitation.direction == .outgoing, state != .accepted {
            let failure =
                error
                ?? EarshotError(
                    state == .declined ? .declined : .notConnected, "\(record.invitation.peerName) has not accepted the invitation")
            self.failWaitingForSession(of: record.invitation.peerID, failure)
        }
        // An own invitation that crossed the accepted one has the same end.
        if record.invitation.direction == .incoming, state == .accepted,
            let own = self.pendingInvitation(with: record.invitation.peerID, .outgoing)
        {
            self.resolveInvitation(own, .accepted, session: session)
        }
        self.publishPeer(record.invitation.peerID)
        self.forgetDecidedInvitations()
        return record.invitation
    }

    private func forgetDecidedInvitations() {
        let decided = self.invitations.values.filter { $0.invitation.state != .pending }.map(\.invitation.id)
        for id in decided.dropLast(EarshotLimits.decidedInvitations) { self.invitations.removeValue(forKey: id) }
    }

    private func makeInvitation(
        _ direction: Direction, id: InvitationID, peer: PeerID, context: [UInt8], timeout: Duration, accepted: SessionID? = nil
    ) -> Invitation {
        let now = self.now
        return Invitation(
            id: id, direction: direction, peerID: peer, peerName: self.records[peer]?.name ?? peer.description, context: context,
            state: accepted == nil ? .pending : .accepted, error: nil, errorMessage: nil, createdAt: now,
            expiresAt: now.addingTimeInterval(timeout / .seconds(1)), sessionID: accepted)
    }

    private func remember(_ invitation: Invitation) -> Invitation {
        self.invitations[invitation.id] = InvitationRecord(invitation: invitation)
        self.forgetDecidedInvitations()
        return invitation
    }
}
