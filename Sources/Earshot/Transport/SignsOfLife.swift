import NIOCore

/// The liveness of a connection. A ping is due after `EarshotLimits.pingAfter` of silence, and the connection counts as dead after
/// `EarshotLimits.deadAfter`.
struct SignsOfLife {
    enum Verdict: Hashable {
        case alive
        /// Send a ping with this value.
        case ask(UInt64)
        case dead
    }

    /// The interval between checks of a silent connection: a tenth of the longest silence, so that the limit is not exceeded by much.
    static let interval = TimeAmount.nanoseconds(TimeAmount(EarshotLimits.deadAfter).nanoseconds / 10)

    private var heardAt: NIODeadline
    /// The time of the last ping while this side is behind with reading.
    private var toldAt: NIODeadline?

    /// Creates the state of a newly proven connection.
    init(at now: NIODeadline) { self.heardAt = now }

    /// Records input.
    mutating func heard(at now: NIODeadline) { self.heardAt = now }

    /// Returns the state of the connection, and the time until the next check. A connection that is not read because this side is behind
    /// is not silent. Its peer is pinged, because it may receive nothing else for a long time.
    mutating func check(at now: NIODeadline, isBehind: Bool) -> (verdict: Verdict, next: TimeAmount) {
        if isBehind {
            self.heardAt = now
            let pingAfter = TimeAmount(EarshotLimits.pingAfter)
            // Less often than allowed, because the number of unanswered pings is limited, and no answer is read.
            if let toldAt = self.toldAt, now - toldAt < pingAfter * 2 { return (.alive, pingAfter) }
            self.toldAt = now
            return (.ask(now.uptimeNanoseconds), pingAfter)
        }
        self.toldAt = nil
        let silence = now - self.heardAt
        if silence >= TimeAmount(EarshotLimits.deadAfter) { return (.dead, Self.interval) }
        // No earlier check, so that an idle daemon does not wake up needlessly.
        guard silence >= TimeAmount(EarshotLimits.pingAfter) else { return (.alive, TimeAmount(EarshotLimits.pingAfter) - silence) }
        return (.ask(UInt64(truncatingIfNeeded: silence.nanoseconds)), Self.interval)
    }
}
