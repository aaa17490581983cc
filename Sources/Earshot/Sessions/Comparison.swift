import EarshotWire
import FoundationEssentials
import NIOCore

/// A comparison of digits as the node follows it, across the connections that it may take.
struct Comparison {
    var state: Verification.State
    var digits: String?
    var error: EarshotError?
    var expiresAt: Date?
    /// Ends what waits for too long.
    var timer: Scheduled<Void>?
    /// Tells this one's timer from an earlier one's.
    let id: VerificationID
}

/// When digits were derived lately, and with whom: one attempt with a peer, then a pause; and few with all, since fresh keys are free.
struct ComparisonAttempts {
    private var attempts: [(peer: PeerID, at: NIODeadline)] = []

    mutating func note(_ peer: PeerID, at now: NIODeadline) {
        self.forgetOld(now)
        self.attempts.append((peer, now))
    }

    /// How long a new attempt with this peer has to wait; `nil` where it need not.
    mutating func pause(for peer: PeerID, at now: NIODeadline) -> Duration? {
        self.forgetOld(now)
        let own = self.attempts.last { $0.peer == peer }.map { $0.at + TimeAmount(EarshotLimits.comparisonPause) }
        let isFull = self.attempts.count >= EarshotLimits.comparisonsPerPeriod
        let all = isFull ? self.attempts.first.map { $0.at + TimeAmount(EarshotLimits.comparisonPeriod) } : nil
        guard let until = [own, all].compactMap({ $0 }).max(), until > now else { return nil }
        return Duration(until - now)
    }

    private mutating func forgetOld(_ now: NIODeadline) {
        self.attempts.removeAll { $0.at + TimeAmount(EarshotLimits.comparisonPeriod) <= now }
    }
}
