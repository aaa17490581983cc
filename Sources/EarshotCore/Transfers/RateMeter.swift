/// The rate in bytes per second with a short memory: of the last full second, or of the elapsed part of the first.
package struct RateMeter {
    private var windowStart: MonotonicInstant?
    private var windowBytes: UInt64 = 0
    package private(set) var bytesPerSecond: UInt64 = 0
    private var hasFullWindow = false

    package init() {}

    package mutating func add(_ bytes: UInt64, at now: MonotonicInstant) {
        guard let start = self.windowStart else {
            self.windowStart = now
            self.windowBytes = bytes
            return
        }
        let (sum, isTooMuch) = self.windowBytes.addingReportingOverflow(bytes)
        self.windowBytes = isTooMuch ? .max : sum
        let elapsed = now - start
        let isFull = elapsed >= .seconds(1)
        guard isFull || (!self.hasFullWindow && elapsed > .milliseconds(50)) else { return }
        self.bytesPerSecond = Self.rate(self.windowBytes, in: elapsed)
        guard isFull else { return }
        self.hasFullWindow = true
        self.windowStart = now
        self.windowBytes = 0
    }

    /// Returns the rate as of `now`: it falls while nothing moves.
    package func bytesPerSecond(at now: MonotonicInstant) -> UInt64 {
        guard let start = self.windowStart, now - start >= .seconds(2) else { return self.bytesPerSecond }
        return Self.rate(self.windowBytes, in: now - start)
    }

    /// Returns the rate, clamped to a range that fits.
    private static func rate(_ bytes: UInt64, in time: Duration) -> UInt64 {
        UInt64(min(Double(bytes) / (time / .seconds(1)), 1e18))
    }
}
