import Testing

@testable import EarshotCore

@Suite struct ComparisonAttemptsTests {
    @Test func thereAreFewAttemptsWithAllTogether() {
        var attempts = ComparisonAttempts()
        let start = MonotonicInstant(nanoseconds: 1_000_000_000)
        for number in 0..<EarshotLimits.comparisonsPerPeriod {
            #expect(attempts.pause(for: peerID(99), at: start) == nil)
            attempts.note(peerID(UInt8(number)), at: start)
        }
        #expect(attempts.pause(for: peerID(99), at: start) == EarshotLimits.comparisonPeriod)
        let later = start + .seconds(59)
        #expect(attempts.pause(for: peerID(99), at: later) == .seconds(1))
        #expect(attempts.pause(for: peerID(99), at: start + .seconds(60)) == nil)
        attempts.note(peerID(1), at: start + .seconds(60))
        #expect(attempts.pause(for: peerID(1), at: start + .seconds(61)) == .seconds(29))
        #expect(attempts.pause(for: peerID(1), at: start + .seconds(90)) == nil)
        #expect(attempts.pause(for: peerID(2), at: start + .seconds(61)) == nil)
    }

    @Test func anotherAttemptWaitsForThePause() {
        var attempts = ComparisonAttempts()
        let start = MonotonicInstant(nanoseconds: 1_000_000_000)
        attempts.note(peerID(1), at: start)
        let end = start + EarshotLimits.comparisonPause
        #expect(attempts.pause(for: peerID(1), at: start) == EarshotLimits.comparisonPause)
        #expect(attempts.pause(for: peerID(1), at: end - .nanoseconds(1)) == .nanoseconds(1))
        #expect(attempts.pause(for: peerID(1), at: end) == nil)
        #expect(attempts.pause(for: peerID(2), at: start) == nil)
    }
}
