import EarshotCore
import EarshotWire

/// The running clock (``EarshotCore/Now/running``): goes on from the time that the last daemon has noted, by the monotonic clock. So neither a wall
/// clock that is wrong at a start, nor one that is set, has anything on disk expire before its time.
struct RunningClock: Sendable {
    /// The clock's time at the start, and the monotonic time of that moment.
    private let base: WallTime
    private let start: MonotonicInstant
    /// The latest time that is on disk, or about to be.
    private var noted: WallTime

    init(from base: WallTime = WallTime(milliseconds: 0), at start: MonotonicInstant = MonotonicInstant(nanoseconds: 0)) {
        self.base = base
        self.start = start
        self.noted = base
    }

    func time(at now: MonotonicInstant) -> WallTime { self.base + (now - self.start) }

    /// Whether the time is to be noted on disk again.
    mutating func isNoteDue(at time: WallTime) -> Bool {
        guard time - self.noted >= EarshotLimits.runningNoteInterval else { return false }
        self.noted = time
        return true
    }
}
