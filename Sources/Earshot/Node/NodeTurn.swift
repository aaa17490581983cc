/// The time that the node has worked since its callers last had a turn. An input that is already queued does not release the actor.
/// Without turns, calls and results of the store would wait for all queued inputs.
struct NodeTurn {
    private var worked: Duration = .zero

    /// Adds `work`, and returns whether the turn is over. If it is, the next turn begins.
    mutating func isOver(after work: Duration) -> Bool {
        self.worked += work
        guard self.worked >= EarshotLimits.nodeTurn else { return false }
        self.worked = .zero
        return true
    }
}
