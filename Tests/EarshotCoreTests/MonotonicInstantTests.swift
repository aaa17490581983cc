import Testing

@testable import EarshotCore

@Suite struct MonotonicInstantTests {
    private let start = MonotonicInstant(nanoseconds: 5_000_000_000)
    private let last = MonotonicInstant(nanoseconds: .max)
    private let first = MonotonicInstant(nanoseconds: .min)

    @Test func laterAndEarlier() {
        #expect((self.start + .seconds(2)).nanoseconds == 7_000_000_000)
        #expect((self.start - .seconds(2)).nanoseconds == 3_000_000_000)
        #expect((self.start + .seconds(-6)).nanoseconds == -1_000_000_000)
        #expect(self.start + .nanoseconds(1) > self.start)
        #expect(self.start + .milliseconds(1500) - self.start == .milliseconds(1500))
        #expect(self.start - (self.start + .seconds(3)) == .seconds(-3))
    }

    @Test func whatIsLessThanANanosecondIsCutOff() {
        let less = Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999)
        #expect(self.start + less - self.start == .nanoseconds(1))
        #expect(self.start - less - self.start == .nanoseconds(-1))
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.max) * 10, .seconds(300 * 366 * 86_400)])
    func nothingTrapsAtTheBounds(_ long: Duration) {
        #expect(self.start + long == self.last)
        #expect(self.start - long == self.first)
        #expect(self.start + .zero - long == self.first)
        #expect(self.last + long == self.last && self.first - long == self.first)
        #expect(self.first + .nanoseconds(1) > self.first)
        #expect(self.last - self.first == .nanoseconds(Int64.max) + .nanoseconds(Int64.max) + .nanoseconds(1))
        #expect(self.first + (self.last - self.first) == self.last)
    }
}
