import EarshotWire
import NIOCore

/// What messages, transfers and streams remember of one peer, for as long as it has a row.
struct PeerTraffic {
    var outbox = Outbox()
    /// When what it has refused is tried again.
    var outboxRetry: Scheduled<Void>?
    /// When it was last tried again because a message was read there.
    var outboxResumed: MonotonicInstant?
    /// Whether `outboxRetry` is for that.
    var isResumingSoon = false
    /// Whether a reliable message of its has come on this connection in this session: the first begins without a refusal.
    var hasSentMessage = false
    /// Whether a message of its was refused for its session: none may overtake it until one that is resumed, or the next session.
    var isRefusing = false
    /// How transfers of the session ended whose rows are gone, the latest ones.
    var endedTransfers = EndedTransfers()
    /// How often what it has offered or opened came to nothing.
    var vainOffers = VainOffers()

    mutating func connected() {
        self.hasSentMessage = false
        self.isRefusing = false
    }

    /// What was refused before was of another session, and is over with it.
    mutating func sessionReplaced() {
        self.endedTransfers = EndedTransfers()
        self.hasSentMessage = false
        self.isRefusing = false
    }

    mutating func stopRetrying() {
        self.outboxRetry?.cancel()
        self.outboxRetry = nil
        self.isResumingSoon = false
    }
}

extension Node {
    /// Has messages, transfers and streams hear of a change of a peer that they depend on.
    func changed(_ peer: PeerID, _ change: PeerChange) {
        switch change {
        case .connected: self.traffic[peer]?.connected()
        case .sessionReplaced: self.traffic[peer]?.sessionReplaced()
        case .attached:
            self.flushOutbox(peer)
            self.sendReceipts(to: peer)
            self.resumeTransfers(of: peer)
            self.offerStreams(to: peer)
        case .ended(let ending, let error):
            if ending == .session { self.unnotedReads.removeAll(of: peer) }
            self.end(ending, of: peer, error)
        // Tried again, it would come to the same.
        case .refusedConnection(let explanation):
            self.interruptMovingTransfers(of: peer, .protocolViolation, "the connection was closed for a fault: \(explanation)")
        case .unreachable(let error): self.failUnsent(to: peer, error)
        case .withinReach: self.inviteForQueue(peer)
        case .forgotten: self.traffic.removeValue(forKey: peer)?.outboxRetry?.cancel()
        }
    }
}
