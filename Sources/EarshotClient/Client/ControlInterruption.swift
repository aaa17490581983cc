/// Why a stream of events that resumes by itself was interrupted.
public enum ControlInterruption: Hashable, Sendable {
    /// The daemon ended or was restarted. The reader waits until a daemon answers again.
    case daemonLeft
    /// The daemon dropped this reader because it took no events for a minute, as a paused process does.
    case readerTooSlow
}

/// How a stream of events goes on after an interruption.
struct ControlResumption: Sendable {
    /// How long a daemon may be away; `nil` for as long as it likes.
    let patience: Duration?
    /// Called once for each interruption.
    let onInterruption: @Sendable (ControlInterruption) -> Void
}

/// Which event a reader has seen last, and in which run of the daemon.
struct ControlEventPosition: Hashable, Sendable {
    var epoch: String?
    var sequence: UInt64?

    init(epoch: String?, sequence: UInt64?) {
        self.epoch = epoch
        self.sequence = sequence
    }

    /// From the header of an answer; `nil` from a daemon that sends none.
    init?(header: String?) {
        let parts = header?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        guard parts.count == 2, let epoch = parts.first, let sequence = parts.last.flatMap({ UInt64($0) }) else { return nil }
        self.init(epoch: String(epoch), sequence: sequence)
    }
}

/// The time between attempts to reach a daemon that is away: it doubles up to a limit.
package struct BackOff: Sendable {
    /// A daemon that is restarted takes about as long.
    static let first: Duration = .milliseconds(100)
    /// The longest wait once the daemon is back.
    static let limit: Duration = .seconds(5)

    private var next = Self.first

    /// Begins with the shortest time.
    package init() {}

    /// The time before the next attempt.
    package mutating func step() -> Duration {
        defer { self.next = min(self.next * 2, Self.limit) }
        return self.next
    }
}

extension ControlError {
    /// Whether a restart of the daemon explains it, so that the same call may succeed soon.
    package var isOutage: Bool {
        switch self {
        case .unreachable, .silent, .lost: true
        case .problem(let problem): problem.code == .unavailable
        case .malformed, .source, .output, .cancelled: false
        }
    }
}
