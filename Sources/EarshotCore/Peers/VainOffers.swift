/// How often what a peer had offered or opened has lately come to nothing: it took it back, or it could not be taken here. Each costs rows and
/// events here and next to nothing there; one that does it all the time is answered `busy` until it has paused for a while. A value.
package struct VainOffers: Sendable, Hashable {
    /// As many as are counted now, at `last`.
    private var level = 0
    private var last: MonotonicInstant?

    package init() {}

    /// One more, now.
    package mutating func count(at now: MonotonicInstant) {
        self.settle(at: now)
        self.level = min(self.level + 1, EarshotLimits.vainOffers)
    }

    /// Whether nothing more is taken from it for the moment.
    package mutating func isTooMuch(at now: MonotonicInstant) -> Bool {
        self.settle(at: now)
        return self.level >= EarshotLimits.vainOffers
    }

    /// What has been forgotten since it was last looked at.
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
