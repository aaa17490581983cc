/// An instant of a clock that is never set and that continues while the machine is suspended, in nanoseconds since that clock began.
///
/// Deadlines, pauses and rates use it. The core reads no clock: the caller passes the time. Arithmetic saturates at the bounds, 292 years
/// from the clock's beginning. Instants beyond never come, and no operation traps.
package struct MonotonicInstant: Sendable, Hashable, Comparable {
    /// The nanoseconds since the clock began; negative before that.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Returns a later instant.
    package static func + (instant: Self, duration: Duration) -> Self { instant.moved(by: Self.whole(duration)) }

    /// Returns an earlier instant.
    package static func - (instant: Self, duration: Duration) -> Self { instant.moved(by: -Self.whole(duration)) }

    /// Returns the time since the other instant; negative if this one is earlier.
    package static func - (left: Self, right: Self) -> Duration { .nanoseconds(left.nanoseconds) - .nanoseconds(right.nanoseconds) }

    /// An integer wide enough for every duration in nanoseconds, and for its sum with every instant.
    private typealias Wide = Int128

    private func moved(by nanoseconds: Wide) -> Self { Self(nanoseconds: Int64(clamping: Wide(self.nanoseconds) + nanoseconds)) }

    /// Returns a duration's whole nanoseconds, truncated. The duration's components are not used, because they trap beyond 64 bits of
    /// seconds.
    private static func whole(_ duration: Duration) -> Wide { duration.attoseconds / 1_000_000_000 }
}
