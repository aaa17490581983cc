import Testing

@testable import Earshot

/// The time that the node works before its callers have a turn.
@Suite struct NodeTurnTests {
    private let moment = Duration.nanoseconds(1)

    @Test func aTurnEndsAfterItsTime() {
        var turn = NodeTurn()
        var isOver = turn.isOver(after: EarshotLimits.nodeTurn - self.moment)
        #expect(!isOver)
        isOver = turn.isOver(after: self.moment)
        #expect(isOver, "what was done before counts")
        isOver = turn.isOver(after: EarshotLimits.nodeTurn - self.moment)
        #expect(!isOver, "the next turn is as long")
        isOver = turn.isOver(after: .zero)
        #expect(!isOver)
        isOver = turn.isOver(after: EarshotLimits.nodeTurn * 10)
        #expect(isOver)
        isOver = turn.isOver(after: EarshotLimits.nodeTurn - self.moment)
        #expect(!isOver, "one that was too long costs the next one nothing")
    }
}
