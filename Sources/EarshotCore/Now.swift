/// The present time, by three clocks: handed in with each input, because the core asks no clock.
package struct Now: Sendable, Hashable {
    /// For deadlines, pauses and rates.
    package let monotonic: MonotonicInstant
    /// For times that are shown. The wall clock may be wrong, and jump.
    package let wall: WallTime
    /// For the expiry of what is on disk: the wall clock's time when the state was new, and since then as much more as daemons have run on that
    /// state. Nobody sets this clock, and it stands still while no daemon runs.
    package let running: WallTime

    /// Without a time of its own, the running clock shows what the wall clock shows.
    package init(monotonic: MonotonicInstant, wall: WallTime, running: WallTime? = nil) {
        self.monotonic = monotonic
        self.wall = wall
        self.running = running ?? wall
    }
}
