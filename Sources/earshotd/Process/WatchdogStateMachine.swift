/// Decides when to feed systemd's watchdog: at half its interval, if every part of the daemon has answered since the last time.
///
/// Every part is asked several times in that span, but never again before it has answered. So a slow part is not flooded with requests, and
/// counts as soon as it answers; a stall shorter than the interval has no effect. Times are relative to any fixed moment.
struct WatchdogStateMachine: Sendable {
    /// An action for the caller.
    enum Action: Sendable, Hashable {
        /// Ask the part with this index for a sign of life.
        case ask(Int)
        /// Notify systemd.
        case feed
        /// Log that these parts do not answer.
        case reportStuck([String])
        /// Log that all parts answer again.
        case reportRecovered
    }

    private struct Part {
        let name: String
        let patience: Duration
        var isAsked = false
        var askedAt: Duration
        var answeredAt: Duration?

        /// Whether the part has answered since the last feeding, or still has time to.
        func isWell(since moment: Duration, now: Duration) -> Bool {
            if let answeredAt, answeredAt > moment { return true }
            return self.isAsked && now - self.askedAt < self.patience
        }
    }

    /// The interval at which the watchdog is fed.
    let feedInterval: Duration
    /// The interval at which `tick` must be called.
    let tickInterval: Duration
    private var parts: [Part]
    private var fedAt: Duration
    private var isReported = false

    /// Starts at `now`, with the parts and the longest time that each may be busy with one task. `timeout` is the time after which systemd
    /// considers the daemon hung.
    init(parts: [(name: String, patience: Duration)], timeout: Duration, now: Duration) {
        self.parts = parts.map { Part(name: $0.name, patience: $0.patience, askedAt: now) }
        self.feedInterval = timeout / 2
        self.tickInterval = max(timeout / 8, .milliseconds(1))
        self.fedAt = now
    }

    /// Advances the time.
    mutating func tick(now: Duration) -> [Action] {
        var actions: [Action] = []
        for index in self.parts.indices where !self.parts[index].isAsked {
            self.parts[index].isAsked = true
            self.parts[index].askedAt = now
            actions.append(.ask(index))
        }
        return actions + self.decide(now: now)
    }

    /// Records a part's answer. A late part counts as working again at once.
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
