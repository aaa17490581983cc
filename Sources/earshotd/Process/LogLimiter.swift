internal import Synchronization

/// Limits the lines per label and minute.
final class LogLimiter: Sendable {
    /// The decision about a line.
    enum Verdict: Sendable, Hashable {
        case write
        /// Write the line, after a note about the lines that were dropped in the last minute.
        case writeAfter(dropped: Int)
        case drop
    }

    /// The most lines of a label in a minute.
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
                // The note about dropped lines counts too.
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
