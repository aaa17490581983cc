/// How long the node has worked since its callers last had a turn: an input that is there already does not let go of the actor, and
/// calls, and what the disk has answered, would wait for all that have come.
struct NodeTurn {
    private var worked: Duration = .zero

    /// Whether the turn is over after so much more work; the next one begins with that.
    mutating func isOver(after work: Duration) -> Bool {
        self.worked += work
        guard self.worked >= EarshotLimits.nodeTurn else { return false }
        self.worked = .zero
        return true
    }
}
