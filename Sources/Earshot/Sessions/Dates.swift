public import FoundationEssentials

// The core's models tell the time in a way that needs no library; here it is as programs know it.

extension Peer: Hashable {
    /// Hashes the id alone.
    public func hash(into hasher: inout Hasher) { hasher.combine(self.id) }

    /// When its trust ends by itself.
    public var trustExpiresAt: Date? { self.trustEnd?.date }
    /// When it was first seen, by this machine's clock.
    public var firstSeen: Date { self.firstSighting.date }
    /// When it was last heard of.
    public var lastSeen: Date { self.lastSign.date }
}

extension Invitation {
    /// When it was made, or came.
    public var createdAt: Date { self.created.date }
    /// When it times out.
    public var expiresAt: Date { self.end.date }
}

extension Message {
    /// By the sender's clock.
    public var sentAt: Date { self.sent.date }
    /// When it was committed here; `nil` for outgoing ones.
    public var receivedAt: Date? { self.received?.date }
}

extension OutboxMessage {
    /// When it was queued.
    public var sentAt: Date { self.sent.date }
    /// When it is given up.
    public var expiresAt: Date { self.end.date }
}

extension Session {
    /// When it was agreed, by this machine's clock.
    public var createdAt: Date { self.created.date }
}

extension Group {
    /// When it was made, by its creator's clock.
    public var createdAt: Date { self.created.date }
}

extension Group.Member {
    /// When it joined, by its own clock.
    public var joinedAt: Date { self.joined.date }
}

extension Verification {
    /// Until when it is waited for, or the digits are shown.
    public var expiresAt: Date? { self.end?.date }
}

extension ByteStream {
    /// When this side heard of it.
    public var openedAt: Date { self.opened.date }
    /// When it ended.
    public var closedAt: Date? { self.closed?.date }
}

extension Resource {
    /// When it was offered.
    public var createdAt: Date { self.created.date }
    /// When it got its final state.
    public var completedAt: Date? { self.completed?.date }
}
