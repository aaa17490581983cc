import EarshotWire

/// A comparison of digits with one peer, across the connections that it may take.
struct ComparisonState: Sendable {
    /// What readers of events see of it.
    struct Shown: Sendable {
        let state: Verification.State
        let digits: String?
        let error: EarshotError?
        fileprivate(set) var end: WallTime?
    }

    /// The one that was asked for.
    private(set) var shown: Shown?
    /// What of it was said on the present connection.
    var machine: VerificationStateMachine?

    var state: Verification.State { self.shown?.state ?? .none }

    mutating func show(_ state: Verification.State, digits: String?, _ error: EarshotError?, until end: WallTime?) {
        self.shown = state == .none ? nil : Shown(state: state, digits: digits, error: error, end: end)
    }

    mutating func extend(to end: WallTime) { self.shown?.end = end }
}
