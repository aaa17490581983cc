import EarshotCore
import EarshotWire

/// The running clock (``EarshotCore/Now/running``). It continues from the time that the last daemon noted, by the monotonic clock. Data on
/// disk therefore never expires early because the wall clock is wrong at a start or is set later.
struct RunningClock: Sendable {
    /// The running time at the start, and the monotonic time of that moment.
    private let base: WallTime
    private let start: MonotonicInstant
    /// The latest time that is on disk or about to be written.
    private var noted: WallTime

    init(from base: WallTime = WallTime(milliseconds: 0), at start: MonotonicInstant = MonotonicInstant(nanoseconds: 0)) {
        self.base = base
        self.start = start
        self.noted = base
    }

    func time(at now: MonotonicInstant) -> WallTime { self.base + (now - self.start) }

    /// Whether the time has to be noted on disk again.
    mutating func isNoteDue(at time: WallTime) -> Bool {
        guard time - self.noted >= EarshotLimits.runningNoteInterval else { return false }
        self.noted = time
        return true
    }
}
