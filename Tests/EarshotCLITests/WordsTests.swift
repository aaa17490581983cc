import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

struct WordsTests {
    @Test(
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"),
            (UInt64.max, "18.4 EB"),
        ] as [(UInt64, String)])
    func sizesAreRoundedToAUnit(_ bytes: UInt64, _ text: String) {
        #expect(Words.size(bytes) == text)
    }

    @Test(arguments: [(0, "0:00"), (7.2, "0:08"), (725, "12:05"), (3723, "1:02:03"), (.infinity, "-:--"), (.nan, "-:--"), (-3, "0:00")])
    func clocksRoundUpToWholeSeconds(_ seconds: Double, _ text: String) {
        #expect(Words.clock(seconds) == text)
    }

    @Test(arguments: [(1, "1 s"), (1.5, "1.5 s"), (90, "90 s"), (120, "2 min"), (0.25, "0.25 s")])
    func givenTimesAreShownExactly(_ seconds: Double, _ text: String) { #expect(Words.seconds(seconds) == text) }

    @Test(arguments: [(30, " up to 30 s"), (300, " up to 5 min"), (90, " up to 90 s"), (0.2, " up to 1 s"), (0, ""), (-1, "")])
    func waitsAreShownRoundedUp(_ seconds: Double, _ text: String) {
        let begin = Date(timeIntervalSince1970: 1_000_000)
        #expect(Words.wait(from: begin, to: begin.addingTimeInterval(seconds)) == text)
        #expect(Words.wait(from: nil, to: begin) == "" && Words.wait(from: begin, to: nil) == "")
    }

    /// A command to type on another machine must not contain text that a shell would split.
    @Test(arguments: [
        ("alice", "alice"), ("a-1_b.c", "a-1_b.c"), ("Alice's", "ABCDEFGHIJKL"), ("a b", "ABCDEFGHIJKL"), ("-x", "ABCDEFGHIJKL"),
    ])
    func namesThatAShellWouldSplitAreTypedAsIDs(_ name: String, _ typed: String) {
        #expect(Words.accepting(name: name, id: "ABCDEFGHIJKLMNOP") == "earshot accept \(typed)")
    }

    @Test func aHundredPercentMeansAll() {
        #expect(Words.percent(999_999, of: 1_000_000) == "99%")
        #expect(Words.percent(0, of: 0) == "100%")
        #expect(Words.percent(.max - 1, of: .max) == "99%")
    }

    @Test func progressFitsTheTerminal() {
        let line = ProgressLine.text(name: String(repeating: "x", count: 300), transferred: 45, size: 100, rate: 5, width: 60)
        #expect(DisplayWidth.of(line) == 60)
        #expect(line.hasSuffix("  45%  5 B/s  0:11 left"))
        let paced = ProgressLine.text(name: "x", transferred: 45, size: 100, rate: 5, left: 90, width: 60)
        #expect(paced == "x  45%  5 B/s  1:30 left", "the daemon's long memory counts")
    }

    @Test(arguments: [
        ("30", 30), ("1.5", 1.5), ("30s", 30), ("2min", 120), ("2m", 120), ("500ms", 0.5), ("1h", 3600), ("7d", 604_800), ("0", 0),
    ])
    func timesAreReadWithAndWithoutUnits(_ text: String, _ seconds: Double) {
        #expect(Seconds(argument: text)?.value == seconds)
    }

    /// Rates are written like the sizes of the settings.
    @Test(arguments: [("1K", 1024), ("1024", 1024), ("10M", 10 << 20), ("10m", 10 << 20), ("1024G", 1 << 40)] as [(String, UInt64)])
    func ratesAreReadWithAndWithoutUnits(_ text: String, _ rate: UInt64) {
        #expect(TransferRate(argument: text)?.bytesPerSecond == rate)
    }

    @Test(arguments: ["", "0", "1023", "1025G", "1099511627777", "M", "-1M", "+1M", "1.5M", "10MB", "10M/s", "99999999999999999999"])
    func ratesThatAreNone(_ text: String) { #expect(TransferRate(argument: text) == nil) }

    /// A date is read as it is printed. A time without a date was that long ago.
    @Test func timesInThePast() throws {
        let now = Date(timeIntervalSince1970: 1_764_000_000)
        #expect(PastTime(argument: "2h")?.date(at: now) == now - 7200)
        let shown = Words.time(now)
        #expect(PastTime(argument: shown)?.date(at: .distantFuture) == now)
        #expect(PastTime(argument: shown.replacing(" ", with: "T"))?.date(at: .distantFuture) == now)
        let minute = try #require(PastTime(argument: String(shown.dropLast(3)))?.date(at: .distantFuture))
        #expect(now - 60 < minute && minute <= now)
        let day = try #require(PastTime(argument: String(shown.prefix(10)))?.date(at: .distantFuture))
        #expect(Words.time(day) == "\(shown.prefix(10)) 00:00:00")
    }

    @Test(arguments: ["", "yesterday", "2026-13-01", "2026-02-30", "2026-11-21 25:00:00", "2026-11-21 ", "2026-11-21x", "10:00"])
    func otherTextIsNoTimeInThePast(_ text: String) {
        #expect(PastTime(argument: text) == nil)
    }

    @Test(arguments: ["", "s", "-1", "nan", "inf", "1e9", "0x10", "5 parsecs", "1.2.3", ".", "99999999999", "٣"])
    func otherTextIsNoTime(_ text: String) {
        #expect(Seconds(argument: text) == nil)
    }
}
