import Testing

@testable import Earshot

/// The units of work in a turn on a machine that is slow.
@Suite struct TurnPaceTests {
    private let most = EarshotLimits.turnWork
    private let moment = Duration.nanoseconds(1)

    @Test func slowWorkShrinksTheNextTurn() {
        let pace = TurnPace()
        #expect(pace.size(upTo: self.most) == self.most, "nothing is known yet")
        pace.note(work: self.most, took: EarshotLimits.turnTime)
        #expect(pace.size(upTo: self.most) == self.most)
        pace.note(work: 0, took: self.moment)
        #expect(pace.size(upTo: self.most) == self.most - 1, "the time of what the node went on with counts as well")
        #expect(pace.size(upTo: EarshotLimits.strangersTurnWork) == EarshotLimits.strangersTurnWork, "they would not fill it")
    }

    @Test func shortestTurnWork() {
        let pace = TurnPace()
        pace.note(work: EarshotLimits.shortestTurnWork * 100, took: EarshotLimits.turnTime * 100)
        #expect(pace.size(upTo: self.most) == EarshotLimits.shortestTurnWork)
        pace.note(work: 0, took: .seconds(5))
        #expect(pace.size(upTo: self.most) == EarshotLimits.shortestTurnWork)
    }

    @Test func littleWorkShowsNothing() {
        let pace = TurnPace()
        pace.note(work: 127, took: .seconds(1))
        #expect(pace.size(upTo: self.most) == self.most)
        pace.note(work: 1, took: .zero)
        #expect(pace.size(upTo: self.most) == EarshotLimits.shortestTurnWork)
    }

    /// A moment in which the machine was busy with other work does not affect the measurement for long.
    @Test func whatWasLongAgoIsForgotten() {
        let pace = TurnPace()
        pace.note(work: 128, took: .milliseconds(100))
        #expect(pace.size(upTo: self.most) == EarshotLimits.shortestTurnWork)
        for _ in 0..<32 { pace.note(work: self.most, took: EarshotLimits.turnTime / 2) }
        #expect(pace.size(upTo: self.most) == self.most)
    }
}
