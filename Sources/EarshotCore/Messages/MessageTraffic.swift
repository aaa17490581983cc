import EarshotWire

/// The state of the messages to and from one peer, which lives as long as the peer's row.
struct MessageTraffic: Sendable {
    var outbox = Outbox()
    /// The time of the last retry that followed a read receipt.
    private(set) var resumed: MonotonicInstant?
    /// Whether a deadline for retrying refused messages is set.
    private(set) var isRetrying = false
    /// Whether that retry follows a read receipt.
    private(set) var isResumingSoon = false
    /// The order of the peer's messages in this session on this connection. For groups, ``GroupTies`` stores the order, because it has to
    /// outlast the peer's membership.
    private(set) var order = IncomingOrder()

    /// Notes the order of the peer's messages; a new one begins with each connection and each session.
    mutating func note(_ order: IncomingOrder) { self.order = order }

    mutating func connectionLost() {
        self.outbox.connectionLost()
        self.isRetrying = false
        self.isResumingSoon = false
    }

    /// Schedules a retry of refused messages. Returns the pause before it; `nil` if a retry is already scheduled.
    mutating func retry() -> Duration? {
        guard !self.isRetrying else { return nil }
        self.isRetrying = true
        let delays = EarshotLimits.refusedDelays
        return delays[max(0, min(self.outbox.refusals, delays.count) - 1)]
    }

    /// Retries refused messages after the peer read something, because its inbox may have room again. The retry happens at once, but at
    /// most once a second, whatever the peer sends. If it is too early, returns the pause before the retry.
    mutating func resume(at now: MonotonicInstant) -> Duration? {
        guard self.outbox.isPaused else { return nil }
        guard let due = self.resumed.map({ $0 + EarshotLimits.resumeInterval }), now < due else {
            self.resumed = now
            self.outbox.resume()
            return nil
        }
        guard !self.isResumingSoon else { return nil }
        self.isResumingSoon = true
        self.isRetrying = true
        return due - now
    }

    /// Retries refused messages at the deadline.
    mutating func retryDue(at now: MonotonicInstant) {
        self.isRetrying = false
        if self.isResumingSoon {
            self.isResumingSoon = false
            self.resumed = now
        }
        self.outbox.resume()
    }
}
