/// When systemd's watchdog is fed: at half its interval, if every part of the daemon has answered since it was fed last.
///
/// Every part is asked several times in that span, and never again before it has answered, so that one that is only slow costs nothing and
/// counts as soon as it has come round; a stall shorter than the interval is forgiven. Times are since any fixed moment.
struct WatchdogStateMachine: Sendable {
    /// What the caller is to do.
    enum Action: Sendable, Hashable {
        /// Ask this part, by its index, for a sign of life.
        case ask(Int)
        /// Tell systemd that all is well.
        case feed
        /// Say that these do not answer.
        case reportStuck([String])
        /// Say that all answer again.
        case reportRecovered
    }

    private struct Part {
        let name: String
        let patience: Duration
        var isAsked = false
        var askedAt: Duration
        var answeredAt: Duration?

        /// Whether it has answered since, or still has time to.
        func isWell(since moment: Duration, now: Duration) -> Bool {
            if let answeredAt, answeredAt > moment { return true }
            return self.isAsked && now - self.askedAt < self.patience
        }
    }

    /// How often the watchdog is fed.
    let feedInterval: Duration
    /// How often `tick` is to be called.
    let tickInterval: Duration
    private var parts: [Part]
    private var fedAt: Duration
    private var isReported = false

    /// Begins at `now`, with the parts and how long each may be busy with one thing; `timeout` is the time after which systemd takes the
    /// daemon for dead.
    init(parts: [(name: String, patience: Duration)], timeout: Duration, now: Duration) {
        self.parts = parts.map { Part(name: $0.name, patience: $0.patience, askedAt: now) }
        self.feedInterval = timeout / 2
        self.tickInterval = max(timeout / 8, .milliseconds(1))
        self.fedAt = now
    }

    /// Time has passed.
    mutating func tick(now: Duration) -> [Action] {
        var actions: [Action] = []
        for index in self.parts.indices where !self.parts[index].isAsked {
            self.parts[index].isAsked = true
            self.parts[index].askedAt = now
            actions.append(.ask(index))
        }
        return actions + self.decide(now: now)
    }

    /// A part has answered; one that was late makes up for it at once.
    mutating func answered(_ index: Int, now: Duration) -> [Action] {
        guard self.parts.indices.contains(index) else { return [] }
        self.parts[index].isAsked = false
        self.parts[index].answeredAt = now
        return self.decide(now: now)
    }

    private mutating func decide(now: Duration) -> [Action] {
        guard now - self.fedAt >= self.feedInterval else { return [] }
        let fedAt = self.fedAt
        let stuck = self.parts.filter { !$0.isWell(since: fedAt, now: now) }.map(\.name)
        guard stuck.isEmpty else {
            defer { self.isReported = true }
            return self.isReported ? [] : [.reportStuck(stuck)]
        }
        self.fedAt = now
        defer { self.isReported = false }
        return self.isReported ? [.reportRecovered, .feed] : [.feed]
    }
}
