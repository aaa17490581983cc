import Foundation
import Testing

@testable import EarshotCore

@Suite struct WallTimeTests {
    /// The text equals Foundation's up to the year 9999. Before October 1582 Foundation uses the Julian calendar, unlike ISO 8601.
    @Test func theTextIsThatOfISO8601() {
        let days: [Int64] = [-141_427, -1, 0, 1, 58, 59, 60, 10_956, 11_015, 11_016, 11_017, 19_782, 47_540, 47_541, 2_932_896]
        for day in days + stride(from: -141_427, to: 2_932_896, by: 9973) {
            for second: Int64 in [0, 1, 3599, 43_200, 86_399] {
                let time = day * 86_400 + second
                let expected = Date(timeIntervalSince1970: Double(time)).formatted(.iso8601)
                #expect(WallTime(milliseconds: time * 1000).text == expected)
                #expect(WallTime(milliseconds: time * 1000 + 999).text == expected)
            }
        }
    }

    @Test func theFirstYear() {
        #expect(WallTime(milliseconds: -719_162 * 86_400_000).text == "0001-01-01T00:00:00Z")
        #expect(WallTime(milliseconds: -719_103 * 86_400_000).text == "0001-03-01T00:00:00Z")
    }

    @Test func nothingTrapsAtTheBounds() {
        #expect(WallTime(milliseconds: .max).text.hasSuffix("Z") && WallTime(milliseconds: .min).text.hasSuffix("Z"))
        #expect(WallTime(milliseconds: .min) < WallTime(milliseconds: 0))
    }
}
