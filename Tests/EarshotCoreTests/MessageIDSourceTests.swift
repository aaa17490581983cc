import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct MessageIDSourceTests {
    /// A generator with predictable numbers.
    private struct Numbers: RandomNumberGenerator {
        var last: UInt64 = 0
        mutating func next() -> UInt64 {
            self.last += 4
            return self.last
        }
    }

    private func ids(_ count: Int, at milliseconds: Int64 = 3000, from source: inout MessageIDSource) -> [MessageID] {
        var random = Numbers()
        return (0..<count).map { _ in source.next(at: WallTime(milliseconds: milliseconds), using: &random) }
    }

    @Test func theSameRandomnessMakesTheSameIDs() {
        var (one, other) = (MessageIDSource(), MessageIDSource())
        let ids = self.ids(10, from: &one)
        #expect(ids == self.ids(10, from: &other))
        #expect(Set(ids).count == 10)
        #expect(ids[1].low & 0xff == 2, "each has the next word")
    }

    @Test func theySortByTheirTime() {
        var source = MessageIDSource()
        let early = self.ids(1, at: 1_700_000_000_000, from: &source)
        source = MessageIDSource()
        #expect(early[0].high < self.ids(1, at: 1_700_000_000_001, from: &source)[0].high)
    }

    /// This also holds for more ids than one millisecond has room for.
    @Test func thoseOfOneMomentSortInTheirOrder() {
        var source = MessageIDSource()
        let ids = self.ids(10_000, from: &source)
        #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.high < $1.high })
    }

    /// Ids run ahead of a clock that was set back a little, and follow a clock that was set back far.
    @Test func aClockThatIsSetBack() {
        var source = MessageIDSource()
        let first = self.ids(1, at: 100_000, from: &source)[0]
        let ahead = self.ids(1, at: 90_000, from: &source)[0]
        #expect(first.high < ahead.high)
        #expect(self.ids(1, at: 89_999, from: &source)[0].high >> 16 == 89_999)
    }
}
