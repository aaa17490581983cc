/// A moment by a clock that is never set and that runs on while the machine is suspended: nanoseconds since that clock began.
///
/// Deadlines, pauses and rates go by it. The core never asks what time it is: the caller hands it in. Arithmetic ends at the bounds, 292
/// years from the clock's beginning: what lies beyond never comes, and nothing traps.
package struct MonotonicInstant: Sendable, Hashable, Comparable {
    /// Since the clock began; negative before that.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// So much later.
    package static func + (instant: Self, duration: Duration) -> Self { instant.moved(by: Self.whole(duration)) }

    /// So much earlier.
    package static func - (instant: Self, duration: Duration) -> Self { instant.moved(by: -Self.whole(duration)) }

    /// How long after the other; negative where it is before.
    package static func - (left: Self, right: Self) -> Duration { .nanoseconds(left.nanoseconds) - .nanoseconds(right.nanoseconds) }

    /// Wide enough for every duration's nanoseconds, and for their sum with those of every instant.
    private typealias Wide = Int128

    private func moved(by nanoseconds: Wide) -> Self { Self(nanoseconds: Int64(clamping: Wide(self.nanoseconds) + nanoseconds)) }

    /// A duration's whole nanoseconds; what is less is cut off. Not by way of its components: these trap beyond 64 bits of seconds.
    private static func whole(_ duration: Duration) -> Wide { duration.attoseconds / 1_000_000_000 }
}
