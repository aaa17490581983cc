import EarshotWire

/// What is remembered of the messages to and from one peer, for as long as it has a row.
struct MessageTraffic: Sendable {
    var outbox = Outbox()
    /// When what it has refused was last tried again because a message was read there.
    private(set) var resumed: MonotonicInstant?
    /// Whether what it has refused is to be tried again at a deadline.
    private(set) var isRetrying = false
    /// Whether that is because a message was read there.
    private(set) var isResumingSoon = false
    /// Whether a reliable message of its has come on this connection in this session: the first begins without a refusal. Of groups the ties
    /// of the peer say that, which outlast its being a member.
    private(set) var hasSentMessage = false
    /// Whether a message of its was refused for its session: none may overtake it until one that is resumed, or the next session.
    private(set) var isRefusing = false

    mutating func connected() {
        self.hasSentMessage = false
        self.isRefusing = false
    }

    /// What was refused before was of another session, and is over with it.
    mutating func sessionReplaced() {
        self.hasSentMessage = false
        self.isRefusing = false
    }

    mutating func connectionLost() {
        self.outbox.connectionLost()
        self.isRetrying = false
        self.isResumingSoon = false
    }

    /// A reliable message of its session has come.
    mutating func received() { self.hasSentMessage = true }
    mutating func refuse(_ isRefusing: Bool) { self.isRefusing = isRefusing }

    /// What it has refused is tried again later; `nil` where that is so already, and otherwise after which pause.
    mutating func retry() -> Duration? {
        guard !self.isRetrying else { return nil }
        self.isRetrying = true
        let delays = EarshotLimits.refusedDelays
        return delays[max(0, min(self.outbox.refusals, delays.count) - 1)]
    }

    /// It has read something, so that there may be room again: what it has refused is tried at once, but once a second at most, whatever the
    /// peer says. Gives after which pause where it is too soon.
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

    /// The time to try again has come.
    mutating func retryDue(at now: MonotonicInstant) {
        self.isRetrying = false
        if self.isResumingSoon {
            self.isResumingSoon = false
            self.resumed = now
        }
        self.outbox.resume()
    }
}
