package import EarshotWire

/// The recent attempts at deriving digits. After an attempt, the same peer has to pause; the number of attempts with all peers is limited
/// too, since new keys cost nothing.
package struct ComparisonAttempts: Sendable {
    private var attempts: [(peer: PeerID, at: MonotonicInstant)] = []

    package init() {}

    package mutating func note(_ peer: PeerID, at now: MonotonicInstant) {
        self.forgetOld(now)
        self.attempts.append((peer, now))
    }

    /// Returns the pause before a new attempt with this peer; `nil` if none is needed.
    package mutating func pause(for peer: PeerID, at now: MonotonicInstant) -> Duration? {
        self.forgetOld(now)
        let own = self.attempts.last { $0.peer == peer }.map { $0.at + EarshotLimits.comparisonPause }
        let isFull = self.attempts.count >= EarshotLimits.comparisonsPerPeriod
        let all = isFull ? self.attempts.first.map { $0.at + EarshotLimits.comparisonPeriod } : nil
        guard let until = [own, all].compactMap({ $0 }).max(), until > now else { return nil }
        return until - now
    }

    private mutating func forgetOld(_ now: MonotonicInstant) {
        self.attempts.removeAll { $0.at + EarshotLimits.comparisonPeriod <= now }
    }
}
