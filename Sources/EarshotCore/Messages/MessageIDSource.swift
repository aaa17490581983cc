package import EarshotWire

/// A source of message ids, made from the time and from the caller's randomness (UUID version 7, RFC 9562 section 5.7). Consecutive ids
/// sort in their order, even within a millisecond.
package struct MessageIDSource: Sendable {
    /// The time of the last id, in the fractions of a millisecond that an id can express.
    private var last: Int64 = 0

    /// The time by which ids may run ahead of a clock that was set back. Beyond it, they restart from the clock.
    private static let lead: Int64 = 10_000 * MessageID.ticksPerMillisecond

    package init() {}

    /// Returns a new id that sorts by its time.
    package mutating func next(at wall: WallTime, using random: inout some RandomNumberGenerator) -> MessageID {
        let bounds = WireLimits.sentAtMilliseconds
        let ticks = max(0, min(wall.milliseconds, bounds.upperBound)) * MessageID.ticksPerMillisecond
        self.last = self.last < ticks || self.last > ticks + Self.lead ? ticks : self.last + 1
        return .timeOrdered(ticks: self.last, random: random.next())
    }
}
