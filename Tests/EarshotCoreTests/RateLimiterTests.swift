import EarshotWire
import Testing

@testable import EarshotCore

/// A burst, then one per interval.
@Suite struct RateLimiterTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    /// A class around a limiter, so that an expectation may change it.
    private final class Limiter {
        private var limiter: RateLimiter<Int>
        init(burst: Int, interval: Duration) { self.limiter = RateLimiter(burst: burst, interval: interval, capacity: 8) }
        var count: Int { self.limiter.count }
        func allows(_ key: Int, at now: MonotonicInstant) -> Bool { self.limiter.allows(key, at: now) }
        func take(_ key: Int, at now: MonotonicInstant) -> Bool {
            guard self.limiter.allows(key, at: now) else { return false }
            self.limiter.note(key, at: now)
            return true
        }
    }

    private final class Rate {
        private var rate = AskingRate()
        func admit(_ peer: UInt8, from origin: [UInt8]?, at now: MonotonicInstant) -> Bool {
            self.admit(peerID(peer), from: origin, at: now)
        }
        func admit(_ peer: PeerID, from origin: [UInt8]?, at now: MonotonicInstant) -> Bool {
            self.rate.admit(peer, from: origin, at: now)
        }
    }

    @Test func soManyAtOnceThenOneAnInterval() {
        let limiter = Limiter(burst: 3, interval: .seconds(1))
        for _ in 0..<3 { #expect(limiter.take(1, at: self.start)) }
        #expect(!limiter.take(1, at: self.start))
        #expect(limiter.take(2, at: self.start), "each key for itself")
        // A refused request does not count, and none is admitted too soon.
        #expect(!limiter.take(1, at: self.start + .seconds(1) - .nanoseconds(1)))
        #expect(limiter.take(1, at: self.start + .seconds(1)))
        #expect(!limiter.take(1, at: self.start + .seconds(1)))
        // An idle key gets the whole burst again, and no more after a longer time.
        for _ in 0..<3 { #expect(limiter.take(1, at: self.start + .seconds(3600))) }
        #expect(!limiter.take(1, at: self.start + .seconds(3600)))
    }

    @Test func oneAtATime() {
        let limiter = Limiter(burst: 1, interval: .milliseconds(250))
        for number in 0..<100 {
            let now = self.start + .milliseconds(250) * number
            #expect(limiter.take(1, at: now))
            #expect(!limiter.take(1, at: now + .milliseconds(249)))
        }
    }

    @Test func fewAreRemembered() {
        let limiter = Limiter(burst: 2, interval: .seconds(1))
        // The key with the most requests is remembered longest.
        for _ in 0..<2 { #expect(limiter.take(0, at: self.start)) }
        for key in 1..<1_000 {
            let now = self.start + .microseconds(1) * key
            #expect(limiter.take(key, at: now))
            #expect(limiter.count <= 8)
            #expect(!limiter.allows(0, at: now))
        }
        // Idle keys are evicted first.
        let later = self.start + .seconds(60)
        for key in -8 ... -1 { for _ in 0..<2 { #expect(limiter.take(key, at: later)) } }
        for key in -8 ... -1 { #expect(!limiter.allows(key, at: later)) }
    }

    /// A program may set its own burst, up to a maximum.
    @Test(arguments: [(1, 1), (9, 9), (0, 1), (10_000, 10_000), (10_001, 10_000)]) func aProgramsOwnBurst(burst: Int, admitted: Int) {
        var rate = AskingRate(burst: burst)
        let now = MonotonicInstant(nanoseconds: 0)
        let answers = (0...admitted).map { _ in rate.admit(peerID(1), from: [10], at: now) }
        #expect(answers.firstIndex(of: false) == admitted)
    }

    @Test func burstsAreLimitedPerPeerAndPerAddress() {
        let rate = Rate()
        for _ in 0..<EarshotLimits.askingBurst { #expect(rate.admit(1, from: [1], at: self.start)) }
        // However many more requests it makes, other peers at its address lose nothing.
        for _ in 0..<1_000 { #expect(!rate.admit(1, from: [1], at: self.start)) }
        for number in EarshotLimits.askingBurst..<EarshotLimits.askingBurstPerAddress {
            #expect(rate.admit(UInt8(100 + number), from: [1], at: self.start))
        }
        #expect(!rate.admit(2, from: [1], at: self.start), "fresh keys do not help")
        #expect(rate.admit(2, from: [2], at: self.start))
        #expect(rate.admit(3, from: nil, at: self.start), "known peers do not pay for their address")
        let later = self.start + EarshotLimits.askingIntervalPerAddress
        #expect(rate.admit(4, from: [1], at: later))
        #expect(!rate.admit(5, from: [1], at: later))
        #expect(!rate.admit(1, from: [2], at: self.start + EarshotLimits.askingInterval - .nanoseconds(1)))
        #expect(rate.admit(1, from: [2], at: self.start + EarshotLimits.askingInterval))
    }

    private func bytes(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    /// The limiter remembers the exhausted bursts of a limited number of peers. One more peer evicts the first, which may then ask again.
    @Test func theFirstAskerIsForgottenAboveTheLimit() {
        let rate = Rate()
        func asks(_ number: Int) -> Bool {
            rate.admit(PeerID(subjectPublicKeyInfo: self.bytes(number)), from: nil, at: self.start + .microseconds(Int64(number)))
        }
        let limit = EarshotLimits.rememberedAskers
        for number in 0..<limit {
            for _ in 0..<EarshotLimits.askingBurst { #expect(asks(number)) }
        }
        for number in 0..<limit { #expect(!asks(number)) }
        #expect(asks(limit))
        #expect(asks(0))
        #expect(!asks(limit - 1), "the last ones are remembered")
    }

    /// The same limit for addresses.
    @Test func rememberedAskersOfAddresses() {
        let rate = Rate()
        var keys = 0
        /// Asks with a fresh key each time.
        func asks(from number: Int) -> Bool {
            keys += 1
            let key = PeerID(subjectPublicKeyInfo: [UInt8(keys >> 16)] + self.bytes(keys & 0xFFFF))
            return rate.admit(key, from: self.bytes(number), at: self.start + .microseconds(Int64(number)))
        }
        let limit = EarshotLimits.rememberedAskers
        for number in 0..<limit {
            for _ in 0..<EarshotLimits.askingBurstPerAddress { #expect(asks(from: number)) }
        }
        for number in 0..<limit { #expect(!asks(from: number)) }
        #expect(asks(from: limit))
        #expect(asks(from: 0))
        #expect(!asks(from: limit - 1))
    }
}
