import Testing

@testable import EarshotDiscovery

@Suite struct PulseTests {
    @Test func callPatience() {
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
}
