import Foundation
import Testing

@testable import EarshotCoding

struct DateTextTests {
    @Test(arguments: [
        ("2026-11-21T10:00:00Z", 1_795_255_200.0), ("2026-11-21T10:00:00.5Z", 1_795_255_200.5),
        ("2026-11-21T10:00:00.250Z", 1_795_255_200.25), ("2026-11-21T11:00:00+01:00", 1_795_255_200.0),
    ])
    func timesAreReadWithAndWithoutFraction(_ text: String, _ seconds: Double) throws {
        let date = try #require(DateText.date(from: text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.0001)
    }

    @Test(arguments: ["", "yesterday", "2026-11-21", "2026-13-41T10:00:00Z", "1795255200"])
    func otherTextIsNoTime(_ text: String) {
        #expect(DateText.date(from: text) == nil)
    }

    @Test func everyMillisecondSurvivesTheRoundTrip() throws {
        for millisecond in 0..<1000 {
            let date = Date(timeIntervalSince1970: 1_795_255_200 + Double(millisecond) / 1000)
            let text = DateText.string(from: date)
            #expect(text == "2026-11-21T10:00:00.\(String(repeating: "0", count: 3 - "\(millisecond)".count))\(millisecond)Z")
            #expect(DateText.string(from: try #require(DateText.date(from: text))) == text)
        }
    }

    @Test func timesAreRoundedToTheNearestMillisecond() {
        #expect(DateText.string(from: Date(timeIntervalSince1970: 1.9996)) == "1970-01-01T00:00:02.000Z")
    }

    /// ISO 8601 has the Gregorian calendar for all years.
    @Test(arguments: [
        ("0001-01-01T00:00:00.000Z", -62_135_596_800.0), ("0004-02-29T12:00:00.500Z", -62_035_847_999.5),
        ("1500-03-01T00:00:00.000Z", -14_826_672_000.0), ("1582-10-14T23:59:59.999Z", -12_219_292_800.001),
        ("1582-10-15T00:00:00.000Z", -12_219_292_800.0), ("1582-12-31T00:00:00.000Z", -12_212_640_000.0),
        ("1583-01-01T00:00:00.000Z", -12_212_553_600.0),
    ])
    func earlyTimesAreGregorian(_ text: String, _ seconds: Double) throws {
        #expect(DateText.string(from: Date(timeIntervalSince1970: seconds)) == text)
        #expect(abs(try #require(DateText.date(from: text)).timeIntervalSince1970 - seconds) < 0.0001)
    }
}
