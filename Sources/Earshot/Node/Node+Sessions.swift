public import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// Sessions belong to keys: they are kept on disk, and attach to whichever connection both sides name them on.
extension Node {
    /// Every session, whether its member is connected or not.
    public func sessions() -> [Session] {
        self.records.values.compactMap { record in record.session.map(record.session) }
    }

    /// Ends a session for both sides; the decision is on disk when this returns.
    /// - Throws: `not-found`, `storage`.
    public func leave(_ id: SessionID) async throws(EarshotError) {
        try await self.decide {
            guard let peer = self.records.values.first(where: { $0.session?.id == id })?.id else {
                return .failure(EarshotError(.notFound, "there is no session \(id)"))
            }
            return .success(
                StoreWork.Decision(changes: [.removeSession(with: peer)]) {
                    guard self.records[peer]?.session?.id == id else { return }
                    self.sessionEnded(peer, tellPeer: true)
                })
        }
    }

    /// Takes up a session in memory; the caller has had it persisted, or is about to.
    func adopt(_ session: StoredSession, with id: PeerID, attached: Bool) {
        let isConnected = self.records[id]?.connection != nil
        self.records[id]?.session = session
        self.records[id]?.hasNamedSession = false
        self.records[id]?.isAttached = attached && isConnected
        self.tellSession(id)
        self.publishPeer(id)
        if attached { self.attached(id) }
    }

    /// The session is gone from the store, or is about to go; everything that depended on it ends.
    func sessionEnded(_ id: PeerID, tellPeer: Bool) {
        guard let record = self.records[id], let session = record.session else { return }
        self.records[id]?.session = nil
        self.records[id]?.isAttached = false
        self.unnotedReads.removeAll(of: id)
        self.forgetUndecided(id)
        if tellPeer { record.connection?.send([.sessionEnd(session.id)]) }
        self.end(.session, of: id, EarshotError(.notConnected, "the session with \(record.name) has ended"))
        self.tell(.sessionChanged(record.endedSession(session), ended: true))
        self.publishPeer(id)
    }

    /// A peer that only the settings let in is kept no longer than its session: fresh keys cost a stranger nothing.
    private func forgetUndecided(_ id: PeerID) {
        guard let record = self.records[id], record.stored?.isDecided == false else { return }
        self.records[id]?.stored = nil
        self.transport.spokenTLS.release(id)
        self.forgetName(record)
    }

    /// Gives up what is on its way to a peer that is not trusted any more, where there is no session to carry it.
    func giveUpSending(to id: PeerID) {
        guard let record = self.records[id], record.session == nil else { return }
        self.end(.trust, of: id, EarshotError(.notConnected, "\(record.name) is not trusted any more"))
    }

    private func tellSession(_ id: PeerID) {
        guard let record = self.records[id], let session = record.session else { return }
        self.tell(.sessionChanged(record.session(session), ended: false))
    }

    /// Both sides have named the session on this connection.
    private func attached(_ id: PeerID) {
        self.logProtection(of: id)
        self.flushOutbox(id)
        self.sendReceipts(to: id)
        self.resumeWaiters(of: id)
    }

    /// The connection under a session is gone; what was on its way waits for the next.
    func detached(_ id: PeerID) {
        self.inviterLeft(id)
        self.end(.connection, of: id, EarshotError(.unavailable, "the connection was lost"))
        self.tellSession(id)
    }

    func receivedResume(_ session: SessionID, from id: PeerID) {
        guard let record = self.records[id] else { return }
        if record.session?.id == session {
            self.nameSession(with: id)
            guard !record.isAttached else { return }
            self.records[id]?.isAttached = true
            self.tellSession(id)
            self.publishPeer(id)
            self.attached(id)
        } else if record.session == nil, record.agreement == nil, let invitation = self.pendingInvitation(with: id, .outgoing) {
            // It accepted while the connection was away: holding the session is its answer.
            self.invitationAccepted(invitation, session: session)
            self.nameSession(with: id)
        } else {
            record.connection?.send([.sessionEnd(session)])
        }
    }

    /// Says once on a connection that we hold the session. One that was agreed upon after the connection was proven, while its answer
    /// came over the connection before, has not been named on this one, and the other side waits for it.
    private func nameSession(with id: PeerID) {
        guard let record = self.records[id], let session = record.session, !record.hasNamedSession else { return }
        self.records[id]?.hasNamedSession = true
        record.connection?.send([.sessionResume(session.id)])
    }

    func receivedEnd(_ session: SessionID, from id: PeerID) {
        guard self.records[id]?.session?.id == session else { return }
        self.sessionEnded(id, tellPeer: false)
        self.keepPeer(id, andSession: true)
    }
}
