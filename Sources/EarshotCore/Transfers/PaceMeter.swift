/// The average pace with a long memory, for the remaining time: a single slow second must not turn two minutes into an hour.
///
/// The average covers the time in which the transfer ran, and older measurements weigh less.
package struct PaceMeter {
    /// The age at which a measurement weighs a third.
    package static let memory: Duration = .seconds(20)
    /// The shortest span of one measurement, so that a burst of small pieces counts as one.
    private static let sample: Duration = .milliseconds(250)

    private var start: MonotonicInstant?
    private var bytes: UInt64 = 0
    /// Bytes and seconds so far, both decaying.
    private var sum = 0.0
    private var seconds = 0.0

    package init() {}

    package mutating func add(_ bytes: UInt64, at now: MonotonicInstant) {
        guard let start = self.start else {
            self.start = now
            return
        }
        let (sum, isTooMuch) = self.bytes.addingReportingOverflow(bytes)
        self.bytes = isTooMuch ? .max : sum
        let elapsed = now - start
        guard elapsed >= Self.sample else { return }
        let fading = max(0, 1 - elapsed / Self.memory)
        self.sum = self.sum * fading + Double(self.bytes)
        self.seconds = self.seconds * fading + elapsed / .seconds(1)
        self.start = now
        self.bytes = 0
    }

    /// Stops the clock until the next bytes: an interruption does not count as slowness.
    package mutating func pause() {
        self.start = nil
        self.bytes = 0
    }

    /// Returns how long `bytes` more will take, in whole seconds, rounded up; `nil` before the first measurement, or if it would take more
    /// than 1e9 seconds.
    package func secondsLeft(for bytes: UInt64) -> UInt64? {
        guard self.seconds > 0, self.sum > 0 else { return nil }
        let left = (Double(bytes) * self.seconds / self.sum).rounded(.up)
        return left < 1e9 ? UInt64(left) : nil
    }
}
