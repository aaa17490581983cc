import Earshot

/// The schedule of resolvers: which instances have one open, and which are next.
///
/// Only an open resolver reports changes, but a daemon allows a client no more than about a thousand. Up to `limit` instances keep theirs.
/// Beyond that, instances take turns: first those never resolved, then those whose last report is the oldest.
struct ResolverSchedule {
    private enum Phase {
        case waiting(notBefore: Duration)
        case open(since: Duration)
    }

    private struct Entry {
        var phase: Phase
        /// When its resolver last reported, or was closed after a report; `nil` before the first time.
        var heardAt: Duration?
        /// Whether the open resolver has reported.
        var hasSpoken = false
        var failures = 0
        /// The number of these failures in which a resolver had no answer.
        var silences = 0
    }

    /// The number of remembered instances, and the number of open resolvers.
    var count: Int { self.entries.count }
    var openResolvers: Int { self.openCount }

    /// The action for an instance that appeared.
    enum Appearance: Equatable {
        case open, wait, known
        /// The table is full. `isFirst` for the first refusal.
        case refuse(isFirst: Bool)
    }

    /// The action for an instance that disappeared.
    enum Disappearance: Equatable {
        case close, forget, unknown
    }

    private let maximumKeys: Int
    private let limit: Int
    private let turns: Int
    private var entries: [Sighting.Key: Entry] = [:]
    private var openCount = 0
    private var hasRefused = false
    private var rotatedAt: Duration = .zero

    init(
        maximumKeys: Int = DiscoveryLimits.sightings, limit: Int = DiscoveryLimits.openResolvers,
        turns: Int = DiscoveryLimits.rotatedResolvers
    ) {
        self.maximumKeys = maximumKeys
        self.limit = limit
        self.turns = turns
    }

    mutating func appeared(_ key: Sighting.Key, now: Duration) -> Appearance {
        guard self.entries[key] == nil else { return .known }
        guard self.entries.count < self.maximumKeys else {
            defer { self.hasRefused = true }
            return .refuse(isFirst: !self.hasRefused)
        }
        guard self.openCount < self.limit else {
            self.entries[key] = Entry(phase: .waiting(notBefore: now))
            return .wait
        }
        self.entries[key] = Entry(phase: .open(since: now))
        self.openCount += 1
        return .open
    }

    mutating func disappeared(_ key: Sighting.Key) -> Disappearance {
        guard let entry = self.entries.removeValue(forKey: key) else { return .unknown }
        switch entry.phase {
        case .waiting: return .forget
        case .open:
            self.openCount -= 1
            return .close
        }
    }

    /// Whether the instance has a resolver now.
    func isOpen(_ key: Sighting.Key) -> Bool {
        if case .open = self.entries[key]?.phase { return true }
        return false
    }

    /// Records that the instance's resolver answered. Returns `false` if the instance is no longer known.
    mutating func resolved(_ key: Sighting.Key, now: Duration) -> Bool {
        guard var entry = self.entries[key] else { return false }
        entry.heardAt = now
        entry.hasSpoken = true
        entry.failures = 0
        entry.silences = 0
        self.entries[key] = entry
        return true
    }

    /// Records that the instance's resolver had no answer or could not be opened. The pause grows each time, but less for an instance that
    /// was resolved before, whose return is not reported otherwise. Returns whether there is a resolver to close.
    mutating func failed(_ key: Sighting.Key, now: Duration, wasOpen: Bool = true) -> Bool {
        guard var entry = self.entries[key], case .open = entry.phase else { return false }
        entry.failures = min(entry.failures + 1, 16)
        if wasOpen { entry.silences = min(entry.silences + 1, 16) }
        let limit = entry.heardAt == nil ? DiscoveryLimits.resolverRetryLimit : DiscoveryLimits.heardRetryLimit
        let delay = min(DiscoveryLimits.resolverRetry * (1 << (entry.failures - 1)), limit)
        entry.phase = .waiting(notBefore: now + delay)
        entry.hasSpoken = false
        self.entries[key] = entry
        self.openCount -= 1
        return true
    }

    /// Returns how often in a row the instance's resolver had no answer.
    func silences(of key: Sighting.Key) -> Int { self.entries[key]?.silences ?? 0 }

    /// Returns the resolvers to close, and then to open, now.
    mutating func rotate(now: Duration) -> (close: [Sighting.Key], open: [Sighting.Key]) {
        guard self.entries.count > self.openCount else { return ([], []) }
        var due: [(key: Sighting.Key, heardAt: Duration?, failures: Int)] = []
        var idle: [(key: Sighting.Key, since: Duration)] = []
        for (key, entry) in self.entries {
            switch entry.phase {
            case .waiting(let notBefore) where notBefore <= now: due.append((key, entry.heardAt, entry.failures))
            case .waiting: break
            case .open(let since) where entry.hasSpoken || now - since >= DiscoveryLimits.resolverPatience: idle.append((key, since))
            case .open: break
            }
        }
        // Instances that were never resolved go first, and among them those with the fewest failures: a forger can invent any number of
        // instances that never resolve.
        due.sort { ($0.heardAt ?? .seconds(-1), $0.failures) < ($1.heardAt ?? .seconds(-1), $1.failures) }
        idle.sort { $0.since < $1.since }
        let free = self.limit - self.openCount
        let unheard = due.prefix { $0.heardAt == nil }.count
        var wanted = max(unheard, min(due.count, free))
        if now - self.rotatedAt >= .seconds(1), due.count > wanted {
            wanted = min(due.count, wanted + self.turns)
        }
        if wanted > free { self.rotatedAt = now }
        let close = idle.prefix(max(0, wanted - free)).map(\.key)
        let open = due.prefix(min(wanted, free + close.count)).map(\.key)
        for key in close {
            self.entries[key]?.phase = .waiting(notBefore: now)
            if self.entries[key]?.hasSpoken == true { self.entries[key]?.heardAt = now }
            self.entries[key]?.hasSpoken = false
        }
        for key in open { self.entries[key]?.phase = .open(since: now) }
        self.openCount += open.count - close.count
        return (close, open)
    }

    /// Returns when `rotate` is next worth calling; `nil` while no instance waits.
    func nextTurn(now: Duration) -> Duration? {
        guard self.entries.count > self.openCount else { return nil }
        var next = now + .seconds(1)
        for entry in self.entries.values where entry.heardAt == nil {
            if case .waiting(let notBefore) = entry.phase { next = min(next, max(notBefore, now + .milliseconds(100))) }
        }
        return next
    }
}
