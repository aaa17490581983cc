import EarshotWire

/// The agreement that accepting an invitation leads to, while it is being written to disk.
struct Agreement: Sendable, Hashable {
    let session: StoredSession
    /// Whether a user has decided about the peer.
    let isDecided: Bool
    /// Whether the peer is trusted from now on.
    let isAlways: Bool
}

/// The session with a peer. It belongs to the two keys, and attaches to the connection on which both sides name it.
struct SessionState: Sendable {
    private(set) var session: StoredSession?
    /// The session that is being written to disk. No other may begin meanwhile.
    private(set) var agreement: Agreement?
    /// Whether both sides have said, on the current connection, that they hold the session.
    private(set) var isAttached = false
    /// Whether this side has named the session on the current connection. The peer waits for that.
    private(set) var hasBeenNamed = false
    /// The session that this side has ended on the current connection. Later frames of the peer about it were sent before the peer learned
    /// of the end.
    private(set) var ended: SessionID?
    /// Whether the disk has refused the end of a session. Its data (receipts, ended transfers) is still there, and does not belong to the
    /// next session.
    private(set) var isEndUnwritten = false
    /// Whether an acceptance of the peer's invitation by the settings waits in the queue of decisions.
    private(set) var isAcceptanceDue = false
    /// Whether data to be sent waits until the peer's invitation is accepted.
    private(set) var isAcceptanceAwaited = false

    mutating func load(_ session: StoredSession) { self.session = session }

    mutating func take(up session: StoredSession, isAttached: Bool) {
        self.session = session
        self.hasBeenNamed = false
        self.isAttached = isAttached
        self.isAcceptanceAwaited = false
    }

    mutating func end(tellingPeer: Bool) {
        if tellingPeer { self.ended = self.session?.id }
        self.session = nil
        self.isAttached = false
    }

    mutating func endWritten(_ isWritten: Bool) { self.isEndUnwritten = !isWritten }
    mutating func attach() { self.isAttached = true }
    mutating func detach() { self.isAttached = false }
    mutating func connected() {
        self.isAttached = false
        self.hasBeenNamed = self.session != nil
        self.ended = nil
    }
    mutating func named() { self.hasBeenNamed = true }

    mutating func begin(_ agreement: Agreement) { self.agreement = agreement }

    /// Ends the agreement, whether it was written or not.
    mutating func endAgreement() -> Agreement? {
        defer { self.agreement = nil }
        return self.agreement
    }

    mutating func makeAcceptanceDue() { self.isAcceptanceDue = true }
    mutating func acceptanceHasTurn() { self.isAcceptanceDue = false }

    mutating func awaitAcceptance() { self.isAcceptanceAwaited = true }

    /// Ends the wait for an acceptance that failed. Returns whether anything waited.
    mutating func endAwaiting() -> Bool {
        defer { self.isAcceptanceAwaited = false }
        return self.isAcceptanceAwaited
    }
}
