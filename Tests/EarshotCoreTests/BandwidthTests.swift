import EarshotWire
import Simulation
import Testing

@testable import EarshotCore

/// The division of a limit on bandwidth, and the pace of one transfer.
@Suite struct BandwidthTests {
    // MARK: Shares

    static let divisions: [(total: UInt64?, own: [UInt64?], rates: [UInt64?])] = [
        (nil, [], []), (nil, [nil, 5000], [nil, 5000]),
        (3000, [], []), (3000, [nil], [3000]), (3000, [nil, nil, nil], [1000, 1000, 1000]),
        // Less than its share leaves the rest to the others.
        (3000, [nil, 500, nil], [1250, 500, 1250]), (3000, [600, 500, nil], [600, 500, 1900]), (3000, [600, 500], [600, 500]),
        // More than its share changes nothing.
        (3000, [5000, nil], [1500, 1500]), (3000, [1500, nil], [1500, 1500]),
        // A share has a minimum.
        (127, [nil, nil], [EarshotLimits.smallestShare, EarshotLimits.smallestShare]),
        (128, [nil, nil], [EarshotLimits.smallestShare, EarshotLimits.smallestShare]),
    ]

    @Test(arguments: divisions.indices) func shares(_ index: Int) {
        let division = Self.divisions[index]
        #expect(BandwidthShares.rates(division.total, among: division.own) == division.rates)
    }

    /// For all limits, nobody exceeds its own, the total is kept and used up, and those that could use more have the same rate.
    @Test func theLawOfShares() {
        var random = SplitMix64(seed: 47)
        for _ in 0..<2000 {
            let count = 1 + random.below(12)
            let total = UInt64(1024 + random.below(1 << 30))
            let own = (0..<count).map { _ -> UInt64? in random.below(3) == 0 ? nil : UInt64(1024 + random.below(1 << 28)) }
            let rates = BandwidthShares.rates(total, among: own).compactMap { $0 }
            #expect(rates.count == count)
            let sum = rates.reduce(0, +)
            #expect(sum <= total)
            var wanting: [UInt64] = []
            for (rate, limit) in zip(rates, own) {
                #expect(rate <= limit ?? .max)
                if rate < limit ?? .max { wanting.append(rate) }
            }
            guard let most = wanting.max(), let least = wanting.min() else { continue }
            #expect(most - least <= UInt64(count) && total - sum <= UInt64(count), "\(total) \(own) \(rates)")
            #expect(rates.allSatisfy { $0 <= most }, "\(total) \(own) \(rates)")
        }
    }

    // MARK: The bucket

    private let start = MonotonicInstant(nanoseconds: 0)

    /// Moves `count` bytes at once, as a mover does, and returns the time that it took.
    private func move(_ count: Int, through bucket: inout TokenBucket, from start: MonotonicInstant) -> Duration {
        var (left, now) = (count, start)
        while left > 0 {
            switch bucket.permit(left, at: now) {
            case .move(let bytes):
                bucket.spend(bytes)
                left -= bytes
            case .wait(let time): now = now + time
            }
        }
        return now - start
    }

    @Test(arguments: [64, 1000, 1 << 20, 10 << 20, 1 << 40] as [UInt64]) func bytesTakeTheirTime(rate: UInt64) {
        var bucket = TokenBucket(rate: rate, at: self.start)
        let time = self.move(Int(rate * 10), through: &bucket, from: self.start)
        #expect(time >= .seconds(10) - .nanoseconds(10) && time < .milliseconds(10_001), "\(time)")
    }

    @Test func aPauseIsWorthABurstOnly() {
        var bucket = TokenBucket(rate: 1_000_000, at: self.start)
        let late = self.start + .seconds(3600)
        let burst = 1_000_000 / 10
        #expect(EarshotLimits.paceBurst == .milliseconds(100))
        #expect(bucket.permit(burst + 1, at: late) == .move(burst))
        bucket.spend(burst)
        guard case .wait = bucket.permit(1, at: late) else { return #expect(Bool(false), "the burst is used up") }
    }

    /// A step has at least 256 bytes, and at least 50 ms' worth, unless fewer bytes are left.
    @Test func steps() {
        var slow = TokenBucket(rate: 1024, at: self.start)
        #expect(slow.permit(10_000, at: self.start) == .wait(.milliseconds(250) + .nanoseconds(1)))
        guard case .wait(let rest) = slow.permit(10_000, at: self.start + .milliseconds(249)) else {
            return #expect(Bool(false), "a byte is missing")
        }
        // Rounded up to nanoseconds.
        #expect(rest > .milliseconds(1) && rest <= .milliseconds(1) + .nanoseconds(2))
        #expect(slow.permit(10_000, at: self.start + .milliseconds(250)) == .move(EarshotLimits.smallestPaceStep))
        var fast = TokenBucket(rate: 1_024_000, at: self.start)
        #expect(fast.permit(1 << 20, at: self.start) == .wait(EarshotLimits.paceStep + .nanoseconds(1)))
        #expect(fast.permit(1, at: self.start + .milliseconds(1)) == .move(1))
    }

    /// A late step loses nothing.
    @Test func lateSteps() {
        var bucket = TokenBucket(rate: 1_000_000, at: self.start)
        var (now, moved) = (self.start, 0)
        while now - self.start < .seconds(10) {
            switch bucket.permit(.max, at: now) {
            case .move(let bytes):
                bucket.spend(bytes)
                moved += bytes
            case .wait(let time): now = now + time + .milliseconds(20)
            }
        }
        #expect(moved > 9_900_000 && moved <= 10_200_000, "\(moved)")
    }

    @Test func aChangedRateTakesHoldAtOnce() {
        var bucket = TokenBucket(rate: 64, at: self.start)
        guard case .wait(let long) = bucket.permit(1 << 20, at: self.start) else { return #expect(Bool(false), "it begins empty") }
        #expect(long > .seconds(3))
        bucket.change(to: 1 << 20, at: self.start)
        #expect(self.move(1 << 20, through: &bucket, from: self.start) < .milliseconds(1001))
        // A burst of the old rate is none of the new one.
        bucket.change(to: 1024, at: self.start + .seconds(60))
        #expect(self.move(10_240, through: &bucket, from: self.start + .seconds(60)) > .seconds(9))
    }

    /// A clock that stands still or goes back gives nothing.
    @Test func anEarlierTime() {
        var bucket = TokenBucket(rate: 1024, at: self.start + .seconds(5))
        guard case .wait = bucket.permit(1, at: self.start) else { return #expect(Bool(false), "no time has passed") }
        #expect(bucket.permit(1, at: self.start + .seconds(6)) == .move(1))
        #expect(TokenBucket(rate: 0, at: self.start).rate == 1)
    }
}
