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
}
