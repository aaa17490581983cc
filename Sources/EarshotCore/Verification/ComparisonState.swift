import EarshotWire

/// A comparison of digits with one peer, across the connections that it may take.
struct ComparisonState: Sendable {
    /// What readers of events see of it.
    struct Shown: Sendable {
        let state: Verification.State
        let digits: String?
        let error: EarshotError?
        fileprivate(set) var end: WallTime?
        /// The same by the clock that nobody sets.
        fileprivate(set) var deadline: MonotonicInstant?
    }

    /// The one that was asked for.
    private(set) var shown: Shown?
    /// What of it was said on the present connection.
    var machine: VerificationStateMachine?

    var state: Verification.State { self.shown?.state ?? .none }

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
