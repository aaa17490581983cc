internal import Synchronization

/// Counts lines by label and minute.
final class LogLimiter: Sendable {
    /// What to do with a line.
    enum Verdict: Sendable, Hashable {
        case write
        /// A new minute has begun after one that was too full.
        case writeAfter(dropped: Int)
        case drop
    }

    /// Lines a label may write in a minute.
    static let limit = 60

    private struct Minute {
        var start: ContinuousClock.Instant
        var count = 0
        var dropped = 0
    }

    private let minutes = Mutex<[String: Minute]>([:])

    init() {}

    func admit(_ label: String, now: ContinuousClock.Instant) -> Verdict {
        self.minutes.withLock { minutes in
            var minute = minutes[label] ?? Minute(start: now)
            defer { minutes[label] = minute }
            var verdict = Verdict.write
            if minute.start.duration(to: now) >= .seconds(60) {
                if minute.dropped > 0 { verdict = .writeAfter(dropped: minute.dropped) }
                // The line about what was left out counts too.
                minute = Minute(start: now, count: minute.dropped > 0 ? 1 : 0)
            }
            guard minute.count < Self.limit else {
                minute.dropped += 1
                return .drop
            }
            minute.count += 1
            return verdict
        }
    }
}
