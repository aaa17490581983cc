import EarshotWire
import OrderedCollections

/// Sessions belong to keys: they are stored on disk, and attach to any connection on which both sides name them.
extension NodeCore {
    /// Starts a session in memory that is on disk, or about to be. If the peer waits for its name, the session is named before anything is
    /// sent in it, because the peer would refuse that.
    mutating func takeUp(_ session: StoredSession, with id: PeerID, isToBeNamed: Bool = false) {
        guard let record = self.records[id] else { return }
        let isNew = record.sessionID != session.id
        let isConnected = record.connection != nil
        self.records[id]?.session.take(up: session, isAttached: isConnected)
        if isToBeNamed { self.nameSession(to: id) }
        if isNew { self.spread(.sessionReplaced, of: id) }
        self.publishSession(with: id)
        self.publishPeer(id)
        self.attached(id)
    }

    /// Ends a session that is removed from the store, or about to be, with everything that depends on it.
    mutating func endSession(with id: PeerID, tellPeer: Bool) {
        guard let record = self.records[id], let session = record.session.session else { return }
        self.records[id]?.session.end(tellingPeer: tellPeer)
        self.log(
            Notice(
                .info, "a session ended",
                ["peer": id, "name": record.name, "session": session.id, "by": tellPeer ? "this machine" : "the peer"]))
        self.spread(.sessionReplaced, of: id)
        self.forgetUndecided(id)
        if tellPeer { self.send(.sessionEnd(session.id), on: record.connection) }
        self.spread(.ended(.session, EarshotError(.notConnected, "the session with \(record.name) has ended")), of: id)
        if let left = self.records[id] { self.publish(.sessionChanged(left.endedSession(session), ended: true)) }
        self.publishPeer(id)
    }

    /// Forgets a peer that only the settings have admitted, when its session ends: fresh keys cost a stranger nothing.
    private mutating func forgetUndecided(_ id: PeerID) {
        guard let record = self.records[id], record.standing.stored?.isDecided == false else { return }
        self.records[id]?.standing.forget()
        self.pin(id, .release)
        self.forgetName(of: record)
    }

    mutating func publishSession(with id: PeerID) {
        guard let record = self.records[id], let session = record.session.session else { return }
        self.publish(.sessionChanged(record.session(session), ended: false))
    }

    /// Logs and announces that a connection carries the session.
    private mutating func attached(_ id: PeerID) {
        if let record = self.records[id], let current = record.link.current {
            let details: KeyValuePairs<String, any CustomStringConvertible> = [
                "peer": id, "name": record.name, "protection": current.facts.protection.rawValue,
            ]
            switch current.facts.protection {
            case .encrypted: self.log(Notice(.info, "a session stands", details))
            case .unprotected:
                self.log(Notice(.warning, "a session stands unprotected: anyone on the network can read it", details))
            }
        }
        self.spread(.attached, of: id)
    }

    /// Ends a session for a caller. The peer is fixed now, because another peer may name a session with the same id before the decision
    /// reaches the head of the queue.
    mutating func leave(_ session: SessionID, _ call: CallID) {
        guard let peer = self.records.values.first(where: { $0.sessionID == session })?.id else {
            return self.answer(call, .failure(Self.noSession(session)))
        }
        self.decide(.leave(session, with: peer, call))
    }

    static func noSession(_ id: SessionID) -> EarshotError { EarshotError(.notFound, "there is no session \(id)") }

    /// Handles a peer's frame that names a session, which the peer thus holds.
    mutating func sessionNamed(_ session: SessionID, by id: PeerID) {
        guard let record = self.records[id] else { return }
        // The id of a group is never that of a session of two.
        guard self.groups[GroupID(session: session)] == nil else { return self.send(.sessionEnd(session), on: record.connection) }
        if record.sessionID == session {
            self.nameSession(to: id)
            guard !record.isAttached else { return }
            self.records[id]?.session.attach()
            self.publishSession(with: id)
            self.publishPeer(id)
            self.attached(id)
        } else if record.sessionID == nil, record.session.agreement == nil, record.session.ended != session,
            let invitation = self.invitations.pending(with: id, .outgoing)
        {
            // The session may be one of an earlier program. The answer to the invitation will tell.
            guard !self.settings.sessionsEndWithPrograms else { return }
            // The peer accepted while the connection was down: holding the session is its answer.
            self.invitationAccepted(invitation, session: session)
            self.nameSession(to: id)
        } else {
            self.send(.sessionEnd(session), on: record.connection)
        }
    }

    /// Tells a peer that this side is not in the session that the peer names.
    mutating func disownSession(_ session: SessionID, of id: PeerID) {
        guard let record = self.records[id], record.sessionID != session, record.session.agreement?.session.id != session else { return }
        self.send(.sessionEnd(session), on: record.connection)
    }

    /// Names the session once per connection. A session whose acceptance came over an earlier connection has not been named on this one,
    /// and the peer waits for that.
    mutating func nameSession(to id: PeerID) {
        guard let record = self.records[id], let session = record.sessionID, !record.session.hasBeenNamed else { return }
        self.records[id]?.session.named()
        self.send(.sessionResume(session), on: record.connection)
    }

    mutating func sessionEndCame(_ session: SessionID, from id: PeerID) {
        guard self.records[id]?.sessionID == session else { return }
        self.endSession(with: id, tellPeer: false)
        self.keepPeer(id, andSession: true)
    }

    /// Passes a change of a peer to everything that depends on it: messages, then transfers, then the rest of the core.
    mutating func spread(_ change: PeerChange, of id: PeerID) {
        self.messagesHear(change, of: id)
        self.transfersHear(change, of: id)
        switch change {
        case .ended(let ending, let error):
            self.endStreams(of: id, by: ending, error)
            if ending.fate(of: .dataConnections) == .ends { self.endDataPaths(of: id, by: ending) }
            if ending.fate(of: .comparison) == .ends { self.interruptComparison(id) }
        case .attached: self.offerStreams(to: id)
        case .connected, .sessionReplaced, .refusedConnection, .unreachable, .withinReach, .forgotten: break
        }
    }
}
