import EarshotWire

/// A comparison of digits with one peer, which may span several connections.
struct ComparisonState: Sendable {
    /// The public state of a comparison, as published in events.
    struct Shown: Sendable {
        let state: Verification.State
        let digits: String?
        let error: EarshotError?
        fileprivate(set) var end: WallTime?
        /// The same time by the monotonic clock.
        fileprivate(set) var deadline: MonotonicInstant?
    }

    /// The present comparison; `nil` if there is none.
    private(set) var shown: Shown?
    /// The state of the exchange on the present connection.
    private(set) var machine: VerificationStateMachine?

    var state: Verification.State { self.shown?.state ?? .none }

    /// Sets the state of the exchange, for a new connection or after a step; `nil` after the connection was lost.
    mutating func exchange(_ machine: VerificationStateMachine?) { self.machine = machine }
    /// Ends the exchange. Returns the frame that tells the peer, if any.
    mutating func endExchange(_ reason: VerificationFrame.EndReason) -> VerificationFrame? { self.machine?.end(reason) }

    mutating func show(_ state: Verification.State, digits: String?, _ error: EarshotError?, for time: Duration?, at now: Now) {
        guard state != .none else { return self.shown = nil }
        self.shown = Shown(state: state, digits: digits, error: error)
        if let time { self.extend(by: time, at: now) }
    }

    mutating func extend(by time: Duration, at now: Now) {
        self.shown?.end = now.wall + time
        self.shown?.deadline = now.monotonic + time
    }
}
