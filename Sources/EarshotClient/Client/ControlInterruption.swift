/// The cause of an interruption of a stream of events that resumes automatically.
public enum ControlInterruption: Hashable, Sendable {
    /// The daemon ended or was restarted. The reader waits until a daemon answers again.
    case daemonLeft
    /// The daemon dropped this reader because it took no events for a minute, as a paused process does.
    case readerTooSlow
}

/// The rules for resuming a stream of events after an interruption.
struct ControlResumption: Sendable {
    /// The longest absence of the daemon; `nil` for no limit.
    let patience: Duration?
    /// Called once for each interruption.
    let onInterruption: @Sendable (ControlInterruption) -> Void
}

/// The last event that a reader has seen, and the run of the daemon that sent it.
struct ControlEventPosition: Hashable, Sendable {
    var epoch: String?
    var sequence: UInt64?

    init(epoch: String?, sequence: UInt64?) {
        self.epoch = epoch
        self.sequence = sequence
    }

    /// Parses the header of an answer; `nil` if an older daemon does not send it.
    init?(header: String?) {
        let parts = header?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        guard parts.count == 2, let epoch = parts.first, let sequence = parts.last.flatMap({ UInt64($0) }) else { return nil }
        self.init(epoch: String(epoch), sequence: sequence)
    }
}

/// The time between attempts to reach an absent daemon, which doubles up to a limit.
package struct BackOff: Sendable {
    /// The first pause: about the time that a restart of the daemon takes.
    static let first: Duration = .milliseconds(100)
    /// The longest pause.
    static let limit: Duration = .seconds(5)

    private var next = Self.first

    /// Starts with the shortest pause.
    package init() {}

    /// Returns the pause before the next attempt, and doubles the following one.
    package mutating func step() -> Duration {
        defer { self.next = min(self.next * 2, Self.limit) }
        return self.next
    }
}

extension ControlError {
    /// Whether a restart of the daemon can explain the error, so that the same call may succeed soon.
    package var isOutage: Bool {
        switch self {
        case .unreachable, .silent, .lost: true
        case .problem(let problem): problem.code == .unavailable
        case .malformed, .source, .output, .cancelled: false
        }
    }
}
