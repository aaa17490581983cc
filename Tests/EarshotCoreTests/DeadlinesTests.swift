import Testing

@testable import EarshotCore

@Suite struct DeadlinesTests {
    private var deadlines = Deadlines<String>()

    private func at(_ nanoseconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: nanoseconds) }

    @Test mutating func theEarliestFirst() {
        self.deadlines.set("late", at: self.at(3))
        self.deadlines.set("early", at: self.at(1))
        self.deadlines.set("first of two", at: self.at(2))
        self.deadlines.set("second of two", at: self.at(2))
        #expect(self.deadlines.next == self.at(1))
        #expect(self.deadlines.popDue(at: self.at(0)) == nil)
        #expect((0..<5).map { _ in self.deadlines.popDue(at: self.at(3)) } == ["early", "first of two", "second of two", "late", nil])
        #expect(self.deadlines.next == nil)
    }

    @Test mutating func aKeyHasOneMoment() {
        self.deadlines.set("a", at: self.at(1))
        self.deadlines.set("a", at: self.at(5))
        #expect(self.deadlines.count == 1)
        #expect(self.deadlines.popDue(at: self.at(4)) == nil)
        #expect(self.deadlines.popDue(at: self.at(5)) == "a")
        #expect(self.deadlines.popDue(at: self.at(9)) == nil)
    }

    @Test mutating func whatIsCancelledIsNotDue() {
        self.deadlines.set("a", at: self.at(1))
        self.deadlines.set("b", at: self.at(2))
        self.deadlines.cancel("a")
        #expect(self.deadlines.next == self.at(2))
        #expect(self.deadlines.popDue(at: self.at(9)) == "b")
    }

    /// After a thousand changes, the collection holds only the current deadlines.
    @Test mutating func cancelledOnesDoNotGather() {
        for number in 0..<1000 {
            self.deadlines.set("\(number)", at: self.at(Int64(1000 - number)))
            if number % 100 != 0 { self.deadlines.cancel("\(number)") }
        }
        #expect(self.deadlines.count == 10)
        #expect((0..<11).map { _ in self.deadlines.popDue(at: self.at(1000)) } == (0..<10).map { "\((9 - $0) * 100)" } + [nil])
    }
}
