import NIOCore

/// Whether a connection still gives signs of life: asks for one after `EarshotLimits.pingAfter` of silence, and gives it up for dead
/// after `EarshotLimits.deadAfter`.
struct SignsOfLife {
    enum Verdict: Hashable {
        case alive
        /// Send a ping with this value.
        case ask(UInt64)
        case dead
    }

    /// How often to look once it is silent: a tenth of the longest silence, so that none is much longer than that.
    static let interval = TimeAmount.nanoseconds(TimeAmount(EarshotLimits.deadAfter).nanoseconds / 10)

    private var heardAt: NIODeadline
    /// When the other side heard last that we are there, while we are behind.
    private var toldAt: NIODeadline?

    /// A connection that has just proven itself.
    init(at now: NIODeadline) { self.heardAt = now }

    /// Something came.
    mutating func heard(at now: NIODeadline) { self.heardAt = now }

    /// What is to be thought of it, and when to look again. A connection that we do not read from because we are behind is not silent; its
    /// peer, which may have nothing else from us for as long, hears that we are there.
    mutating func check(at now: NIODeadline, isBehind: Bool) -> (verdict: Verdict, next: TimeAmount) {
        if isBehind {
            self.heardAt = now
            let pingAfter = TimeAmount(EarshotLimits.pingAfter)
            // Not as often as may be: so many pings may be out, and no answer is read.
            if let toldAt = self.toldAt, now - toldAt < pingAfter * 2 { return (.alive, pingAfter) }
            self.toldAt = now
            return (.ask(now.uptimeNanoseconds), pingAfter)
        }
        self.toldAt = nil
        let silence = now - self.heardAt
        if silence >= TimeAmount(EarshotLimits.deadAfter) { return (.dead, Self.interval) }
        // Not before it can be silent for long: an idle daemon is not to wake up for nothing.
        guard silence >= TimeAmount(EarshotLimits.pingAfter) else { return (.alive, TimeAmount(EarshotLimits.pingAfter) - silence) }
        return (.ask(UInt64(truncatingIfNeeded: silence.nanoseconds)), Self.interval)
    }
}
