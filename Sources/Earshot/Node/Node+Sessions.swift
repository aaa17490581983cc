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
        guard let record = self.records.values.first(where: { $0.session?.id == id }) else {
            throw EarshotError(.notFound, "there is no session \(id)")
        }
        try await self.persist([.removeSession(id)])
        guard self.records[record.id]?.session?.id == id else { return }
        self.sessionEnded(record.id, tellPeer: true)
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

    /// The session is gone from the store; everything that depended on it ends.
    func sessionEnded(_ id: PeerID, tellPeer: Bool) {
        guard let record = self.records[id], let session = record.session else { return }
        self.records[id]?.session = nil
        self.records[id]?.isAttached = false
        if tellPeer { record.connection?.send([.sessionEnd(session.id)]) }
        self.failOutbox(of: id, EarshotError(.notConnected, "the session with \(record.name) has ended"), queuedToo: true)
        self.closeData(of: id)
        self.interruptTransfers(of: id, .notConnected, "the session has ended")
        self.endStreams(of: id, EarshotError(.cancelled, "the session has ended"))
        self.tell(.sessionChanged(record.endedSession(session), ended: true))
        self.publishPeer(id)
    }

    /// Ends the session with a peer, if there is one, for both sides; on disk too, but for the one that is gone there already.
    func endSession(with id: PeerID, removed: SessionID?) {
        guard let session = self.records[id]?.session else { return }
        if session.id != removed { self.persist([.removeSession(session.id)]) { _ in } }
        self.sessionEnded(id, tellPeer: true)
    }

    /// Gives up what is on its way to a peer that is not trusted any more, where there is no session to carry it.
    func giveUpSending(to id: PeerID) {
        guard let record = self.records[id], record.session == nil else { return }
        let why = "\(record.name) is not trusted any more"
        self.failOutbox(of: id, EarshotError(.notConnected, why), queuedToo: true)
        self.interruptTransfers(of: id, .notConnected, why)
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
        self.closeData(of: id)
        self.interruptComparison(id)
        self.pauseTransfers(of: id)
        self.streamsLost(of: id)
        self.records[id]?.outbox.connectionLost()
        self.records[id]?.outboxRetry?.cancel()
        self.records[id]?.outboxRetry = nil
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
        } else if record.session == nil, let invitation = self.pendingInvitation(with: id, .outgoing) {
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
        self.persist([.removeSession(session)]) { _ in }
        self.sessionEnded(id, tellPeer: false)
    }
}
