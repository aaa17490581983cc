import Testing

@testable import EarshotCore

@Suite struct RateMeterTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    @Test func thePaceHasALongMemory() {
        var pace = PaceMeter()
        #expect(pace.secondsLeft(for: 10) == nil)
        // Ten per second for a minute, and then nothing for a second.
        for tick in 0...240 { pace.add(tick == 0 ? 0 : 25, at: self.start + .milliseconds(250 * tick)) }
        #expect((10...11).contains(pace.secondsLeft(for: 1000) ?? 0))
        pace.add(0, at: self.start + .seconds(61))
        #expect((10...11).contains(pace.secondsLeft(for: 1000) ?? 0))
        // The pace does adapt: a tenth of the rate for two minutes.
        for tick in 1...480 { pace.add(2, at: self.start + .seconds(61) + .milliseconds(250 * tick)) }
        #expect((110...126).contains(pace.secondsLeft(for: 1000) ?? 0))
    }

    @Test func anInterruptionIsNoSlowness() {
        var pace = PaceMeter()
        for tick in 0...4 { pace.add(100, at: self.start + .seconds(tick)) }
        #expect((10...11).contains(pace.secondsLeft(for: 1000) ?? 0))
        pace.pause()
        pace.add(100, at: self.start + .seconds(3600))
        pace.add(100, at: self.start + .seconds(3601))
        #expect((10...11).contains(pace.secondsLeft(for: 1000) ?? 0))
        #expect(pace.secondsLeft(for: 0) == 0)
    }

    @Test func agesAreNotTold() {
        var pace = PaceMeter()
        pace.add(0, at: self.start)
        pace.add(0, at: self.start + .seconds(1))
        #expect(pace.secondsLeft(for: 1) == nil)
        pace.add(1, at: self.start + .seconds(2))
        #expect(pace.secondsLeft(for: .max) == nil)
    }

    @Test func theRateHasAShortMemory() {
        var meter = RateMeter()
        meter.add(0, at: self.start)
        meter.add(1000, at: self.start + .seconds(1))
        #expect(meter.bytesPerSecond == 1000)
        meter.add(10, at: self.start + .seconds(2))
        #expect(meter.bytesPerSecond == 10)
    }

    /// The displayed rate falls while nothing moves.
    @Test func aRateFalls() {
        var meter = RateMeter()
        meter.add(0, at: self.start)
        meter.add(1000, at: self.start + .seconds(1))
        #expect(meter.bytesPerSecond(at: self.start + .seconds(1)) == 1000)
        #expect(meter.bytesPerSecond(at: self.start + .seconds(4)) == 0)
    }
}
