import Testing

@testable import EarshotDiscovery

@Suite struct PulseTests {
    @Test func aCallIsSilentAfterItsPatience() {
        var pulse = Pulse()
        let idle = pulse.check(now: .seconds(100))
        #expect(idle == nil, "waiting for something to happen is no silence")
        pulse.began(now: .seconds(100))
        let patient = pulse.check(now: .seconds(100) + DiscoveryLimits.callPatience - .nanoseconds(1))
        #expect(patient == nil)
        let silence = pulse.check(now: .seconds(100) + DiscoveryLimits.callPatience)
        #expect(silence == .seconds(100) + DiscoveryLimits.callPatience)
        #expect(pulse.isSilent)
        let again = pulse.check(now: .seconds(200))
        #expect(again == nil, "told once")
    }

    @Test func anAnswerEndsTheSilence() {
        var pulse = Pulse()
        pulse.began(now: .seconds(1))
        let inTime = pulse.ended(now: .seconds(2))
        #expect(!inTime)
        pulse.began(now: .seconds(3))
        let silence = pulse.check(now: .seconds(6))
        #expect(silence == .seconds(4), "since the last answer, not since the question")
        let late = pulse.ended(now: .seconds(7))
        #expect(late, "it had been given up")
        #expect(!pulse.isSilent)
        pulse.began(now: .seconds(8))
        let next = pulse.ended(now: .seconds(8))
        #expect(!next)
    }

    /// An idle daemon is woken up for the watch once a pulse; a call that hangs is told of in time all the same.
    @Test func itIsCheckedWhenACallCanHaveTakenTooLong() {
        let (period, patience) = (DiscoveryLimits.pulse, DiscoveryLimits.callPatience)
        var pulse = Pulse()
        pulse.began(now: .seconds(100))
        _ = pulse.ended(now: .seconds(100))
        #expect(pulse.nextCheck(now: .seconds(100)) == .seconds(100) + period + patience)
        #expect(pulse.nextCheck(now: .seconds(100) + period) == .seconds(100) + period + patience)
        // The thread has not come round for longer than it does: a call may have begun just now.
        #expect(pulse.nextCheck(now: .seconds(200)) == .seconds(200) + patience)
        pulse.began(now: .seconds(100) + period)
        let check = pulse.nextCheck(now: .seconds(101) + period)
        #expect(check == .seconds(100) + period + patience)
        let silence = pulse.check(now: check)
        #expect(silence == period + patience)
        #expect(period + patience < DiscoveryLimits.avahiPatience)
        // Told once: the next silence is another one.
        #expect(pulse.nextCheck(now: check) == check + patience)
    }
}
