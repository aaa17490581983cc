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

    /// How often to look: a tenth of the longest silence, so that none is much longer than that.
    static let interval = TimeAmount.nanoseconds(TimeAmount(EarshotLimits.deadAfter).nanoseconds / 10)

    private var hasHeard = false
    private var silence: TimeAmount = .zero

    /// Something came.
    mutating func heard() { self.hasHeard = true }

    /// Another ``interval`` has passed. A connection that we do not read from because we are behind is not silent.
    mutating func check(isBehind: Bool) -> Verdict {
        guard !self.hasHeard, !isBehind else {
            self.hasHeard = false
            self.silence = .zero
            return .alive
        }
        self.silence = self.silence + Self.interval
        if self.silence >= TimeAmount(EarshotLimits.deadAfter) { return .dead }
        guard self.silence >= TimeAmount(EarshotLimits.pingAfter) else { return .alive }
        return .ask(UInt64(truncatingIfNeeded: self.silence.nanoseconds))
    }
}
