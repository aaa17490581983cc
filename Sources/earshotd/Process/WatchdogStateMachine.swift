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
        var isAsked = false
        var answeredAt: Duration?
    }

    /// How often the watchdog is fed.
    let feedInterval: Duration
    /// How often `tick` is to be called.
    let tickInterval: Duration
    private var parts: [Part]
    private var fedAt: Duration
    private var isReported = false

    /// Begins at `now`; `timeout` is the time after which systemd takes the daemon for dead.
    init(parts: [String], timeout: Duration, now: Duration) {
        self.parts = parts.map { Part(name: $0) }
        self.feedInterval = timeout / 2
        self.tickInterval = max(timeout / 8, .milliseconds(1))
        self.fedAt = now
    }

    /// Time has passed.
    mutating func tick(now: Duration) -> [Action] {
        var actions: [Action] = []
        for index in self.parts.indices where !self.parts[index].isAsked {
            self.parts[index].isAsked = true
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
        let stuck = self.parts.filter { part in part.answeredAt.map { $0 <= fedAt } ?? true }.map(\.name)
        guard stuck.isEmpty else {
            defer { self.isReported = true }
            return self.isReported ? [] : [.reportStuck(stuck)]
        }
        self.fedAt = now
        defer { self.isReported = false }
        return self.isReported ? [.reportRecovered, .feed] : [.feed]
    }
}
