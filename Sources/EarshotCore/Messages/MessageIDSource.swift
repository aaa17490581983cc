package import EarshotWire

/// Makes ids for messages, of their time and of randomness that is handed in (UUID version 7, RFC 9562 section 5.7). Those that follow each
/// other sort so, also within a millisecond.
package struct MessageIDSource: Sendable {
    /// Of the last one, in parts of a millisecond: as many as the id has room for.
    private var last: Int64 = 0

    /// How far ids may run ahead of a clock that was set back before they begin anew with it.
    private static let lead: Int64 = 10_000 * MessageID.ticksPerMillisecond

    package init() {}

    /// A fresh one that sorts by its time.
    package mutating func next(at wall: WallTime, using random: inout some RandomNumberGenerator) -> MessageID {
        let bounds = WireLimits.sentAtMilliseconds
        let ticks = max(0, min(wall.milliseconds, bounds.upperBound)) * MessageID.ticksPerMillisecond
        self.last = self.last < ticks || self.last > ticks + Self.lead ? ticks : self.last + 1
        return .timeOrdered(ticks: self.last, random: random.next())
    }
}
