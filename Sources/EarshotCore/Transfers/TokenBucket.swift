/// The pace of a limited transfer (a token bucket). Bytes become available at the rate, up to a small burst.
///
/// The bucket begins empty. In any time from its beginning, at most that time's worth of bytes moves. A value: the caller passes the time.
package struct TokenBucket: Sendable {
    /// Whether bytes may move now.
    package enum Permit: Sendable, Hashable {
        /// So many bytes may move, at least one.
        case move(Int)
        /// None may move before that time has passed.
        case wait(Duration)
    }

    /// The rate in bytes per second, at least 1.
    package private(set) var rate: UInt64
    /// The available bytes.
    private var level = 0.0
    /// When `level` was right.
    private var last: MonotonicInstant

    package init(rate: UInt64, at now: MonotonicInstant) {
        self.rate = max(rate, 1)
        self.last = now
    }

    /// Changes the rate from now on.
    package mutating func change(to rate: UInt64, at now: MonotonicInstant) {
        self.fill(at: now)
        self.rate = max(rate, 1)
        self.level = min(self.level, self.burst)
    }

    /// Returns whether any of `count` bytes may move. The bytes stay available until they are spent.
    package mutating func permit(_ count: Int, at now: MonotonicInstant) -> Permit {
        self.fill(at: now)
        let least = max(1, min(Double(count), self.step))
        guard self.level < least else { return .move(Int(min(Double(max(count, 1)), self.level))) }
        // Rounded up, so that the bytes are there after this time.
        return .wait(.nanoseconds(Int64(((least - self.level) / Double(self.rate) * 1e9).rounded(.up))) + .nanoseconds(1))
    }

    /// Records that bytes have moved.
    package mutating func spend(_ count: Int) { self.level -= Double(count) }

    private var step: Double { self.bytes(in: EarshotLimits.paceStep, atLeast: EarshotLimits.smallestPaceStep) }

    /// A late step finds twice its bytes.
    private var burst: Double { self.bytes(in: EarshotLimits.paceBurst, atLeast: 2 * EarshotLimits.smallestPaceStep) }

    private func bytes(in time: Duration, atLeast least: Int) -> Double {
        max(Double(self.rate) * (time / .seconds(1)), Double(least))
    }

    private mutating func fill(at now: MonotonicInstant) {
        guard now > self.last else { return }
        self.level = min(self.burst, self.level + (now - self.last) / .seconds(1) * Double(self.rate))
        self.last = now
    }
}
