/// The count of a peer's recent offers and streams that came to nothing: the peer withdrew them, or this machine could not take them. Each
/// costs rows and events here and almost nothing there. A peer that does it all the time is answered `busy` until it has paused for a
/// while. A value.
package struct VainOffers: Sendable, Hashable {
    /// The count at time `last`.
    private var level = 0
    private var last: MonotonicInstant?

    package init() {}

    /// Counts another one.
    package mutating func count(at now: MonotonicInstant) {
        self.settle(at: now)
        self.level = min(self.level + 1, EarshotLimits.vainOffers)
    }

    /// Whether new offers of the peer are refused for now.
    package mutating func isTooMuch(at now: MonotonicInstant) -> Bool {
        self.settle(at: now)
        return self.level >= EarshotLimits.vainOffers
    }

    /// Reduces the count by the time since the last update.
    private mutating func settle(at now: MonotonicInstant) {
        guard let last, self.level > 0 else {
            self.last = now
            return
        }
        let forgotten = Int(clamping: Int64((now - last) / EarshotLimits.vainOfferTime))
        guard forgotten > 0 else { return }
        self.level = max(0, self.level - forgotten)
        self.last = last + EarshotLimits.vainOfferTime * forgotten
    }
}
