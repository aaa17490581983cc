import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct MessageIDSourceTests {
    /// Randomness that is none.
    private struct Numbers: RandomNumberGenerator {
        var last: UInt64 = 0
        mutating func next() -> UInt64 {
            self.last += 4
            return self.last
        }
    }

    @Test func theSameRandomnessMakesTheSameIDs() {
        var (one, other) = (MessageIDSource(Numbers()), MessageIDSource(Numbers()))
        let ids = (0..<10).map { _ in one.next(secondsSince1970: 3) }
        #expect(ids == (0..<10).map { _ in other.next(secondsSince1970: 3) })
        #expect(Set(ids).count == 10)
        #expect(ids[1].low & 0xff == 2, "each has the next word")
    }

    @Test func theySortByTheirTime() {
        var source = MessageIDSource(Numbers(last: .max - 4))
        let early = source.next(secondsSince1970: 1_700_000_000)
        source = MessageIDSource(Numbers())
        #expect(early.high < source.next(secondsSince1970: 1_700_000_000.001).high)
    }
}
