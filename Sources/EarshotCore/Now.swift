/// What the time is, by both clocks: handed in with each input, because the core asks no clock.
package struct Now: Sendable, Hashable {
    /// For deadlines, pauses and rates.
    package let monotonic: MonotonicInstant
    /// For what is shown and stored.
    package let wall: WallTime

    package init(monotonic: MonotonicInstant, wall: WallTime) {
        self.monotonic = monotonic
        self.wall = wall
    }
}
