import HTTPTypes
import Testing

@testable import earshotd

@Suite struct ByteRangeTests {
    private func range(_ text: String?, of size: UInt64 = 100, if condition: String? = nil) -> ByteRange {
        var headers = HTTPFields()
        headers[.range] = text
        headers[.ifRange] = condition
        return ByteRange.requested(in: headers, of: size, tag: "\"xxh3:00\"")
    }

    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=0-99", 0..<100), ("bytes=99-99", 99..<100), ("bytes=10-", 10..<100), ("bytes=-1", 99..<100),
        ("bytes=-100", 0..<100), ("bytes=-101", 0..<100), ("bytes=50-100", 50..<100), ("Bytes=0-18446744073709551615", 0..<100),
        ("bytes=0-99999999999999999999999", 0..<100), ("bytes=-99999999999999999999999", 0..<100),
    ])
    func validRangesSelectAPart(text: String, expected: Range<UInt64>) {
        #expect(self.range(text) == .part(expected))
    }

    @Test(arguments: ["bytes=100-", "bytes=100-100", "bytes=18446744073709551615-", "bytes=99999999999999999999-", "bytes=-0"])
    func rangesOutsideAreUnsatisfiable(text: String) {
        #expect(self.range(text) == .unsatisfiable)
    }

    @Test(
        arguments: [
            nil, "", "bytes", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes=+1-2", "bytes=1-2-3",
            "bytes= 1-2",
            "bytes=1-x",
        ] as [String?])
    func malformedRangesAreIgnored(text: String?) {
        #expect(self.range(text) == .whole)
    }

    @Test func nothingHasNoRange() {
        for text in ["bytes=0-", "bytes=0-0", "bytes=-1"] { #expect(self.range(text, of: 0) == .unsatisfiable) }
    }

    @Test func aRangeOfAnotherContentIsNotAskedFor() {
        #expect(self.range("bytes=0-9", if: "\"xxh3:00\"") == .part(0..<10))
        #expect(self.range("bytes=0-9", if: "\"xxh3:01\"") == .whole)
    }
}
