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
    /// Whether the peer has sent a reliable message on this connection in this session: its first message ignores earlier refusals. For
    /// groups, ``GroupTies`` stores this fact, because it has to outlast the peer's membership.
    private(set) var hasSentMessage = false
    /// Whether a message of the peer's session was refused. None may overtake it until a resumed message comes, or the next session begins.
    private(set) var isRefusing = false

    mutating func connected() {
        self.hasSentMessage = false
        self.isRefusing = false
    }

    /// Resets the state for a new session: earlier refusals belonged to the former one.
    mutating func sessionReplaced() {
        self.hasSentMessage = false
        self.isRefusing = false
    }

    mutating func connectionLost() {
        self.outbox.connectionLost()
        self.isRetrying = false
        self.isResumingSoon = false
    }

    /// Notes that a reliable message of the session came.
    mutating func received() { self.hasSentMessage = true }
    mutating func refuse(_ isRefusing: Bool) { self.isRefusing = isRefusing }

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
