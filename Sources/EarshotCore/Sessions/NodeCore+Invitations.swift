import EarshotWire
import OrderedCollections

/// Inviting peers to a session, and users' decisions about invitations.
extension NodeCore {
    // MARK: Inviting

    mutating func invite(_ name: String, context: [UInt8], timeout: Duration?, _ call: CallID) {
        do throws(EarshotError) {
            guard context.count <= WireLimits.invitationContext else {
                throw EarshotError(
                    .invalidParameter, "an invitation's context has at most \(WireLimits.invitationContext) bytes, not \(context.count)")
            }
            guard !self.isStopping else { throw .stopping }
            let id = try self.resolvePeer(name)
            guard let record = self.records[id] else { throw .unseen(id) }
            guard record.trust != .blocked else { throw .blocked(record.name) }
            if let session = record.sessionID {
                // That session is not on disk yet; this call shares its invitation's outcome.
                if let pending = self.invitations.pending(with: id, .outgoing), let entry = self.invitations[pending], entry.isDeciding {
                    return self.answer(call, .invitation(entry.invitation))
                }
                guard self.decisions.underWay?.ending != id else {
                    throw EarshotError(.conflict, "the session with \(record.name) is about to end; invite it again afterwards")
                }
                let invitation = self.makeInvitation(.outgoing, id: self.fresh(), peer: id, context: context, timeout: .zero, session)
                self.invitations.add(invitation)
                return self.answer(call, .invitation(invitation))
            }
            if let incoming = self.invitations.pending(with: id, .incoming) {
                return self.respond(to: incoming, .accept, always: false, call)
            }
            if self.invitations.pending(with: id, .outgoing) == nil { self.beginInvitation(to: id, context: context, timeout: timeout) }
            guard let pending = self.invitations.pending(with: id, .outgoing), let entry = self.invitations[pending] else {
                throw EarshotError(.notConnected, "the invitation of \(record.name) was over at once")
            }
            self.answer(call, .invitation(entry.invitation))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    private mutating func beginInvitation(to id: PeerID, context: [UInt8], timeout: Duration?) {
        var timeout = timeout ?? self.settings.invitationTimeout
        if timeout <= .zero { timeout = self.settings.invitationTimeout }
        timeout = min(timeout, EarshotLimits.invitationTimeout)
        let invitation = self.makeInvitation(.outgoing, id: self.fresh(), peer: id, context: context, timeout: timeout)
        self.invitations.add(invitation, until: self.now.monotonic + timeout)
        self.set(.invitation(invitation.id), after: timeout)
        self.sendInvitation(to: id)
        self.records[id]?.reach.forgetFailures()
        self.ensureConnection(id, now: true)
        self.redialConfigured(id, after: .zero)
    }

    /// Invites a peer to which a caller sends something.
    mutating func inviteUnlessUnderWay(_ id: PeerID) {
        guard !self.isStopping, let record = self.records[id], record.trust != .blocked, record.sessionID == nil else { return }
        guard !self.settings.sessionsEndWithPrograms else {
            return self.spread(.ended(.invitation, .withoutSession(record.name)), of: id)
        }
        self.inviteForSending(id)
    }

    /// Invites a peer for which something is queued on disk, if it is trusted and within reach.
    mutating func inviteForQueue(_ id: PeerID) {
        guard !self.isStopping, let record = self.records[id], record.sessionID == nil, record.trust == .trusted else { return }
        if !self.deadlines.contains(.queueInvitations) { self.set(.queueInvitations, after: EarshotLimits.queueInvitationInterval) }
        guard record.isNearby || !record.reach.configured.isEmpty else { return }
        self.inviteForSending(id)
    }

    /// Accepts the peer's pending invitation, or invites the peer. An own invitation would cross the peer's: the connection would then drop
    /// the peer's, and no answer to it would be sent.
    private mutating func inviteForSending(_ id: PeerID) {
        guard let incoming = self.invitations.pending(with: id, .incoming) else {
            if !self.isInviting(id) { self.beginInvitation(to: id, context: [], timeout: nil) }
            return
        }
        self.acceptForSending(incoming, of: id)
    }

    /// Sends the pending invitation for a peer on its present connection, once per connection. An invitation that the peer has already
    /// accepted is not repeated. If the connection would drop it, it waits.
    mutating func sendInvitation(to id: PeerID) {
        guard let link = self.records[id]?.connection, let pending = self.invitations.pending(with: id, .outgoing),
            let entry = self.invitations[pending], entry.sentOn != link, !entry.isDeciding, !self.wouldCross(with: id, on: link)
        else { return }
        self.invitations.sent(pending, on: link)
        let timeout = self.invitations.millisecondsLeft(of: pending, at: self.now.monotonic)
        self.send(.invite(Invite(id: pending, timeoutMilliseconds: timeout, context: entry.invitation.context)), on: link)
    }

    /// Whether the connection still carries an invitation of the peer that no user here is asked about. If the peer has the lower id, its
    /// invitation takes precedence.
    private func wouldCross(with id: PeerID, on link: LinkID) -> Bool {
        id < self.id && (self.lateAnswers.contains(on: link) || self.invitations.isWithdrawalDue(from: id, on: link))
    }

    mutating func withdraw(_ id: InvitationID, _ call: CallID) {
        do throws(EarshotError) {
            let invitation = try self.invitation(id)
            guard invitation.direction == .outgoing else {
                throw EarshotError(.conflict, "the invitation \(id) is another peer's; reject it instead")
            }
            guard invitation.state == .pending else { throw .decided(invitation) }
            // Its session is established already, and would end on the peer's side alone. A seat in a group is the inviter's to give until
            // it is on disk.
            guard invitation.group != nil || self.invitations[id]?.isDeciding == false else {
                throw EarshotError(.conflict, "\(invitation.peerName) has accepted the invitation \(id); leave the session instead")
            }
            let end = self.resolveInvitation(id, .cancelled, withdrawing: .withdrawn)
            self.answer(call, .invitation(end ?? invitation))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    // MARK: Deciding

    mutating func respond(to id: InvitationID, _ decision: Invitation.Decision, always: Bool, _ call: CallID) {
        do throws(EarshotError) {
            let invitation = try self.invitation(id)
            guard invitation.direction == .incoming else {
                throw EarshotError(.conflict, "the invitation \(id) is this machine's own; withdraw it instead")
            }
            guard invitation.state == .pending else { throw .decided(invitation) }
            guard self.invitations[id]?.isDeciding == false else {
                throw EarshotError(.conflict, "the invitation \(id) is being answered already")
            }
            switch decision {
            case .reject:
                let end = self.resolveInvitation(id, .declined, answering: .declined)
                return self.answer(call, .invitation(end ?? invitation))
            case .accept:
                guard !self.isStopping else { throw .stopping }
                if invitation.group != nil {
                    guard !always else {
                        throw EarshotError(
                            .invalidParameter, "an invitation to a group says nothing of trust", remedy: .trust)
                    }
                    return self.acceptGroup(id, call)
                }
                if invitation.offer != nil {
                    if always { try self.checkProven(invitation) }
                    return self.acceptOffer(id, for: PendingOffer.Acceptor(call: call, isAlways: always))
                }
                self.decide(.accept(id, of: invitation.peerID, always: always, .person(call)))
            case .block:
                guard !self.isStopping else { throw .stopping }
                try self.checkProven(invitation)
                let request = TrustRequest(peer: invitation.peerID, trust: .blocked, until: nil, name: invitation.peerID.description)
                self.decide(.trust(request, .invitation(id, call)))
            }
            self.invitations.setDeciding(id, true)
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Checks that a user can decide about the inviter, and not only about the invitation.
    private func checkProven(_ invitation: Invitation) throws(EarshotError) {
        guard invitation.peerID != .unprovenDevice else {
            let words = "\(invitation.peerName) has shown no certificate, so that only this offer can be decided"
            throw EarshotError(.invalidParameter, words)
        }
    }

    mutating func awaitInvitation(_ id: InvitationID, _ call: CallID) {
        do throws(EarshotError) {
            let invitation = try self.invitation(id)
            guard invitation.state == .pending, !self.isStopping else { return self.answer(call, .invitation(invitation)) }
            self.invitations.wait(for: id, call)
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Declines the invitations of a peer that is being blocked, and withdraws those to it.
    mutating func declineInvitations(of id: PeerID) {
        for incoming in self.invitations.allPending(with: id, .incoming) {
            if let group = self.invitations[incoming]?.invitation.group?.id, self.groups[group]?.invitation == incoming {
                self.stopJoining(group, incoming, .declined, EarshotError(.cancelled, "a user here has blocked the inviter"))
            }
            self.resolveInvitation(incoming, .declined, answering: .declined)
        }
        for outgoing in self.invitations.allPending(with: id, .outgoing) {
            self.resolveInvitation(outgoing, .cancelled, withdrawing: .withdrawn)
        }
    }

    // MARK: Ends

    mutating func invitationExpired(_ id: InvitationID) {
        guard let entry = self.invitations[id] else { return }
        guard entry.invitation.state == .pending else { return self.takeBack(unanswered: entry.invitation) }
        if let group = entry.invitation.group?.id, let held = self.groups[group], held.invitation == id {
            // The peer has admitted this machine, and that is being written. When a creator returns, it is a member at once by its own
            // signature.
            guard !self.decisions.holds(.group(.join(group, by: id))) else { return self.set(.invitation(id), after: .seconds(1)) }
            let words = "\(entry.invitation.peerName) has not let this machine in within the invitation's time"
            return self.stopJoining(group, id, .timedOut, EarshotError(.timedOut, words))
        }
        // Its answer is being written. If that fails, the invitation has expired.
        guard !entry.isDeciding else { return self.set(.invitation(id), after: .seconds(1)) }
        let invitation = entry.invitation
        let isAnsweredAsMember = entry.isAnsweredAsMember(on: self.records[invitation.peerID]?.connection)
        // The invitation waited for records on a connection that has since gone: the peer is invited again on the next one.
        if !isAnsweredAsMember, let deadline = entry.deadline, deadline > self.now.monotonic {
            return self.set(.invitation(id), after: deadline - self.now.monotonic)
        }
        if isAnsweredAsMember {
            let words = "\(invitation.peerName) says that it is in the group already, and has not shown who let it in; invite it again"
            self.resolveInvitation(id, .failed, EarshotError(.conflict, words), withdrawing: .withdrawn)
            return
        }
        let why = self.records[invitation.peerID].flatMap { $0.connection == nil ? $0.reach.lastError : nil }
        self.resolveInvitation(
            id, .timedOut, why.map { EarshotError(.timedOut, "\(invitation.peerName) could not be reached: \($0.message)") },
            withdrawing: invitation.direction == .outgoing ? .timedOut : nil)
    }

    /// Withdraws an invitation to a group that ended here before its peer answered, now that its time is over. The peer no longer answers
    /// it, and the connection must be free for the next one.
    private mutating func takeBack(unanswered invitation: Invitation) {
        guard let link = self.records[invitation.peerID]?.connection, self.invitations.isUnanswered(invitation.id, on: link) else { return }
        self.send(.group(.inviteWithdraw(InviteWithdraw(id: invitation.id, reason: .timedOut))), on: link)
        self.invitations.answered(invitation.id, on: link)
        self.sendGroupInvitation(to: invitation.peerID)
    }

    /// Logs how an invitation ended. An accepted session invitation from a peer is logged with its acceptor instead.
    private mutating func logEnd(of invitation: Invitation, _ error: EarshotError?) {
        guard !(invitation.direction == .incoming && invitation.state == .accepted && invitation.group == nil) else { return }
        let words = invitation.direction == .incoming ? "an invitation of a peer ended" : "an invitation to a peer ended"
        self.log(
            Notice(
                .info, words,
                [
                    "peer": invitation.peerID, "name": invitation.peerName, "invitation": invitation.id,
                    "state": invitation.state.rawValue, "reason": error?.message ?? "-",
                ]))
    }

    /// Gives an invitation its final state. Tells the peer (by an answer or a withdrawal), waiting callers and subscribers of events.
    @discardableResult
    mutating func resolveInvitation(
        _ id: InvitationID, _ state: Invitation.State, session: SessionID? = nil, _ error: EarshotError? = nil,
        answering answer: InviteAnswer.Decision? = nil, withdrawing reason: InviteWithdraw.Reason? = nil
    ) -> Invitation? {
        guard let (invitation, waiters) = self.invitations.resolve(id, state, session: session, error) else { return nil }
        let peer = invitation.peerID
        self.deadlines.cancel(.inviterAbsent(id))
        if invitation.direction == .incoming { self.strangers.invitations.places.release(peer) }
        let link = self.records[peer]?.connection
        if let answer {
            self.send(invitation.answer(answer), on: link)
        }
        if let reason {
            let withdraw = InviteWithdraw(id: id, reason: reason)
            self.send(invitation.group == nil ? .inviteWithdraw(withdraw) : .group(.inviteWithdraw(withdraw)), on: link)
            self.invitations.answered(id, on: link)
        }
        // If the peer does not answer until the timeout, the invitation is withdrawn then.
        if !self.invitations.isUnanswered(id, on: link) { self.deadlines.cancel(.invitation(id)) }
        self.publish(.invitationResolved(invitation))
        self.logEnd(of: invitation, error)
        for call in waiters { self.answer(call, .invitation(invitation)) }
        if invitation.offer != nil { self.offerEnded(invitation, error) }
        if invitation.group == nil, invitation.direction == .outgoing, state != .accepted { self.invitationFailed(invitation, error) }
        // An own invitation that crossed the accepted one ends in the same way. A peer that has restarted knows only that one, on the
        // present connection.
        if invitation.group == nil, invitation.direction == .incoming, state == .accepted,
            let own = self.invitations.pending(with: peer, .outgoing)
        {
            self.resolveInvitation(own, .accepted, session: session, withdrawing: .withdrawn)
        }
        if peer.kind == .localsend { self.publishDevice(peer) } else { self.publishPeer(peer) }
        self.invitations.forgetDecided()
        return invitation
    }

    /// Ends what waited for a failed invitation. If nobody declined it, some of that waits for the next one.
    private mutating func invitationFailed(_ invitation: Invitation, _ error: EarshotError?) {
        guard self.records[invitation.peerID]?.sessionID == nil else { return }
        let code: EarshotError.Code = invitation.state == .declined ? .declined : .notConnected
        let error = error ?? EarshotError(code, "\(invitation.peerName) has not accepted the invitation")
        self.spread(.ended(error.code == .declined ? .declinedInvitation : .invitation, error), of: invitation.peerID)
    }

    func makeInvitation(
        _ direction: Direction, id: InvitationID, peer: PeerID, context: [UInt8], timeout: Duration, _ session: SessionID? = nil
    ) -> Invitation {
        Invitation(
            id: id, direction: direction, peerID: peer, peerName: self.records[peer]?.name ?? peer.description, context: context,
            state: session == nil ? .pending : .accepted, created: self.now.wall, end: self.now.wall + timeout, sessionID: session)
    }
}

extension Invitation {
    /// Returns the frame that refuses the invitation.
    fileprivate func answer(_ decision: InviteAnswer.Decision) -> Frame {
        guard self.group != nil else { return .inviteAnswer(InviteAnswer(id: self.id, decision: decision)) }
        return .group(.inviteAnswer(GroupInviteAnswer(id: self.id, decision: decision == .busy ? .busy : .declined)))
    }
}

extension EarshotError {
    /// If sessions end with programs, data reaches only the program that agreed to the session.
    static func withoutSession(_ name: String) -> Self { Self(.notConnected, "there is no session with \(name)") }

    fileprivate static func decided(_ invitation: Invitation) -> Self {
        guard invitation.state != .timedOut else {
            return Self(.conflict, "the invitation \(invitation.id) of \(invitation.peerName) expired at \(invitation.end.text)")
        }
        return Self(.conflict, "the invitation \(invitation.id) is \(invitation.state.rawValue) already")
    }
}
