/// Bytes a second with a short memory: of the last full second, or of what there is of the first.
struct RateMeter {
    private var windowStart: ContinuousClock.Instant?
    private var windowBytes: UInt64 = 0
    private(set) var bytesPerSecond: UInt64 = 0
    private var hasFullWindow = false

    mutating func add(_ bytes: UInt64, at now: ContinuousClock.Instant) {
        guard let start = self.windowStart else {
            self.windowStart = now
            self.windowBytes = bytes
            return
        }
        self.windowBytes += bytes
        let elapsed = now - start
        let isFull = elapsed >= .seconds(1)
        guard isFull || (!self.hasFullWindow && elapsed > .milliseconds(50)) else { return }
        self.bytesPerSecond = UInt64(Double(self.windowBytes) / (elapsed / .seconds(1)))
        guard isFull else { return }
        self.hasFullWindow = true
        self.windowStart = now
        self.windowBytes = 0
    }

    /// The rate as it looks `now`: it falls while nothing moves.
    func bytesPerSecond(at now: ContinuousClock.Instant) -> UInt64 {
        guard let start = self.windowStart, now - start >= .seconds(2) else { return self.bytesPerSecond }
        return UInt64(Double(self.windowBytes) / ((now - start) / .seconds(1)))
    }
}

/// The pace with a long memory, for the time that is left: a single slow second must not turn two minutes into an hour.
///
/// An average over the time in which the transfer ran, in which what is long past counts less and less.
struct PaceMeter {
    /// After this time, what was measured counts a third.
    static let memory: Duration = .seconds(20)
    /// What is averaged, so that a burst of small pieces is one measurement.
    private static let sample: Duration = .milliseconds(250)

    private var start: ContinuousClock.Instant?
    private var bytes: UInt64 = 0
    /// Bytes and seconds so far, both fading.
    private var sum = 0.0
    private var seconds = 0.0

    mutating func add(_ bytes: UInt64, at now: ContinuousClock.Instant) {
        guard let start = self.start else {
            self.start = now
            return
        }
        self.bytes += bytes
        let elapsed = now - start
        guard elapsed >= Self.sample else { return }
        let fading = max(0, 1 - elapsed / Self.memory)
        self.sum = self.sum * fading + Double(self.bytes)
        self.seconds = self.seconds * fading + elapsed / .seconds(1)
        self.start = now
        self.bytes = 0
    }

    /// The time stands still until the next bytes: an interruption is no slowness.
    mutating func pause() {
        self.start = nil
        self.bytes = 0
    }

    /// How long `bytes` more will take, in whole seconds, rounded up; `nil` before anything was measured, or where it would take ages.
    func secondsLeft(for bytes: UInt64) -> UInt64? {
        guard self.seconds > 0, self.sum > 0 else { return nil }
        let left = (Double(bytes) * self.seconds / self.sum).rounded(.up)
        return left < 1e9 ? UInt64(left) : nil
    }
}
