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
        self.pendingInvitations[peer, direction]
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
            let record = self.invitations[pending], record.sentOn != connection.id
        else { return }
        let left = max(1, record.invitation.expiresAt.timeIntervalSince(self.now) * 1000)
        self.invitations[pending]?.sentOn = connection.id
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
        guard invitation.state == .pending else {
            throw EarshotError(.conflict, "the invitation \(id) is \(invitation.state.rawValue) already")
        }
        guard self.invitations[id]?.isDeciding == false else {
            throw EarshotError(.conflict, "the invitation \(id) is being answered already")
        }
        switch decision {
        case .accept:
            guard !self.isStopping else { throw Self.stopping }
            let result = await withCheckedContinuation { continuation in
                self.accept(invitation, always: always) { continuation.resume(returning: $0) }
            }
            return try result.get()
        case .reject: return self.resolveInvitation(id, .declined, answering: .declined) ?? invitation
        case .block:
            self.invitations[id]?.isDeciding = true
            defer { self.invitations[id]?.isDeciding = false }
            _ = try await self.setTrust(.blocked, for: invitation.peerID.description)
            return self.invitations[id]?.invitation ?? invitation
        }
    }

    /// Blocking somebody declines what they asked.
    func declineInvitations(of id: PeerID) {
        if let incoming = self.pendingInvitation(with: id, .incoming) {
            self.resolveInvitation(incoming, .declined, answering: .declined)
        }
        if let outgoing = self.pendingInvitation(with: id, .outgoing) {
            self.resolveInvitation(outgoing, .cancelled, withdrawing: .withdrawn)
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
    func resolveInvitation(
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
        record.absence?.cancel()
        record.absence = nil
        let waiters = record.waiters
        record.waiters = []
        record.isDeciding = false
        self.invitations[id] = record
        self.pendingInvitations.remove(record.invitation)
        if record.invitation.direction == .incoming { self.strangers.invitations.places.release(record.invitation.peerID) }
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

    func makeInvitation(
        _ direction: Direction, id: InvitationID, peer: PeerID, context: [UInt8], timeout: Duration, accepted: SessionID? = nil
    ) -> Invitation {
        let now = self.now
        return Invitation(
            id: id, direction: direction, peerID: peer, peerName: self.records[peer]?.name ?? peer.description, context: context,
            state: accepted == nil ? .pending : .accepted, error: nil, errorMessage: nil, createdAt: now,
            expiresAt: now.addingTimeInterval(timeout / .seconds(1)), sessionID: accepted)
    }

    func remember(_ invitation: Invitation) -> Invitation {
        self.invitations[invitation.id] = InvitationRecord(invitation: invitation)
        if invitation.state == .pending { self.pendingInvitations.add(invitation) }
        self.forgetDecidedInvitations()
        return invitation
    }
}
