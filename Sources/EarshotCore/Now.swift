/// The present time by three clocks. It is passed with each input, because the core reads no clock.
package struct Now: Sendable, Hashable {
    /// The clock for deadlines, pauses and rates.
    package let monotonic: MonotonicInstant
    /// The clock for displayed times. The wall clock may be wrong, and may jump.
    package let wall: WallTime
    /// The clock for the expiry of stored rows. It started with the wall clock's time when the state was new, and advances only while a
    /// daemon runs on that state. Nobody sets this clock.
    package let running: WallTime

    /// Creates a time. Without a value of its own, the running clock equals the wall clock.
    package init(monotonic: MonotonicInstant, wall: WallTime, running: WallTime? = nil) {
        self.monotonic = monotonic
        self.wall = wall
        self.running = running ?? wall
    }
}
