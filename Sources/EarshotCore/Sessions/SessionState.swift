import EarshotWire

/// What accepting an invitation comes to, while it is on its way to the disk.
struct Agreement: Sendable, Hashable {
    let session: StoredSession
    /// Whether a person has decided about the peer.
    let isDecided: Bool
    /// Whether it is trusted from now on.
    let isAlways: Bool
}

/// The session with a peer: it belongs to the two keys, and attaches to the connection on which both sides name it.
struct SessionState: Sendable {
    private(set) var session: StoredSession?
    /// The session that is on its way to the disk: no other may begin meanwhile.
    private(set) var agreement: Agreement?
    /// Whether both sides have said, on the connection that stands, that they hold the session.
    private(set) var isAttached = false
    /// Whether this side has named the session on the connection that stands: the other side waits for that.
    private(set) var hasBeenNamed = false
    /// The session that this side has ended on the connection that stands, and has told the peer so: what the peer says of it after that was said
    /// before it has heard.
    private(set) var ended: SessionID?
    /// Whether the disk has refused the end of a session: what belonged to that (receipts, ended transfers) is there yet, and no part of the next.
    var isEndUnwritten = false
    /// Whether what the peer asks is to be accepted by the settings when its turn at the store comes.
    private(set) var isAcceptanceDue = false
    /// Whether something that is sent waits until what the peer asks is accepted.
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

    mutating func attach() { self.isAttached = true }
    mutating func detach() { self.isAttached = false }
    mutating func connected() {
        self.isAttached = false
        self.hasBeenNamed = self.session != nil
        self.ended = nil
    }
    mutating func named() { self.hasBeenNamed = true }

    mutating func begin(_ agreement: Agreement) { self.agreement = agreement }

    /// Its agreement is on disk, or is not to be.
    mutating func endAgreement() -> Agreement? {
        defer { self.agreement = nil }
        return self.agreement
    }

    mutating func makeAcceptanceDue() { self.isAcceptanceDue = true }
    mutating func acceptanceHasTurn() { self.isAcceptanceDue = false }

    mutating func awaitAcceptance() { self.isAcceptanceAwaited = true }

    /// It has come to nothing; whether anything has waited for it.
    mutating func endAwaiting() -> Bool {
        defer { self.isAcceptanceAwaited = false }
        return self.isAcceptanceAwaited
    }
}
