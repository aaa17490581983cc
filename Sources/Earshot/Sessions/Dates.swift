public import FoundationEssentials

// The core's models use times that need no library. These properties convert them to `Date`.

extension Peer {
    /// The time at which trust expires.
    public var trustExpiresAt: Date? { self.trustEnd?.date }
    /// The time of the first sighting, by this machine's clock.
    public var firstSeen: Date { self.firstSighting.date }
    /// The time of the last sign of life.
    public var lastSeen: Date { self.lastSign.date }
}

extension Invitation {
    /// The time at which the invitation was created or received.
    public var createdAt: Date { self.created.date }
    /// The time at which the invitation expires.
    public var expiresAt: Date { self.end.date }
}

extension Message {
    /// The time of sending, by the sender's clock.
    public var sentAt: Date { self.sent.date }
    /// The time at which the message was committed here; `nil` for outgoing messages.
    public var receivedAt: Date? { self.received?.date }
}

extension OutboxMessage {
    /// The time at which the message was queued.
    public var sentAt: Date { self.sent.date }
    /// The time at which the message expires.
    public var expiresAt: Date { self.end.date }
}

extension Session {
    /// The time at which the session was agreed, by this machine's clock.
    public var createdAt: Date { self.created.date }
}

extension Group {
    /// The time of creation, by the creator's clock.
    public var createdAt: Date { self.created.date }
}

extension Group.Member {
    /// The time of joining, by the member's clock.
    public var joinedAt: Date { self.joined.date }
}

extension Verification {
    /// The time at which the wait for the peer, or the display of the digits, ends.
    public var expiresAt: Date? { self.end?.date }
}

extension ByteStream {
    /// The time at which this side learned of the stream.
    public var openedAt: Date { self.opened.date }
    /// The time at which the stream ended.
    public var closedAt: Date? { self.closed?.date }
}

extension Resource {
    /// The time of the offer.
    public var createdAt: Date { self.created.date }
    /// The time at which the resource reached its final state.
    public var completedAt: Date? { self.completed?.date }
}
