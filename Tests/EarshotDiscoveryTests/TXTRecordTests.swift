import Earshot
import Testing

@testable import EarshotDiscovery

@Suite struct TXTRecordTests {
    private func pairs(_ strings: String...) -> [TXTPair] {
        TXTRecord.pairs(of: strings.map { Array($0.utf8) })
    }

    private func pair(_ key: String, _ value: String) -> TXTPair {
        TXTPair(key: key, value: Array(value.utf8))
    }

    @Test func pairsKeepTheirOrder() {
        #expect(self.pairs("v=1", "id=x", "a=b=c") == [self.pair("v", "1"), self.pair("id", "x"), self.pair("a", "b=c")])
    }

    @Test func theFirstOccurrenceOfAKeyCountsWhateverItsCase() {
        #expect(self.pairs("ID=1", "id=2", "Id=3", "z=4") == [self.pair("ID", "1"), self.pair("z", "4")])
    }

    @Test func aStringWithoutEqualsSignIsAnEmptyValue() {
        #expect(self.pairs("flag", "empty=", "flag=late") == [self.pair("flag", ""), self.pair("empty", "")])
    }

    @Test func stringsWithoutAKeyAreDropped() {
        #expect(self.pairs("=value", "", "=", "k=v") == [self.pair("k", "v")])
    }

    @Test func keysThatAreNotPrintableASCIIAreDropped() {
        #expect(self.pairs("schlüssel=1", "a\u{1b}b=2", "a\u{7f}=3", "a b~=4") == [self.pair("a b~", "4")])
    }

    @Test func valuesMayBeAnyBytes() {
        let value: [UInt8] = [0, 0xFF, UInt8(ascii: "="), 0x1B]
        #expect(TXTRecord.pairs(of: [Array("k=".utf8) + value]) == [TXTPair(key: "k", value: value)])
    }

    @Test func aPeerCannotMakeUsKeepMoreThanTheLimit() {
        let many = (0..<10_000).map { Array("k\($0)=v".utf8) }
        #expect(TXTRecord.pairs(of: many).count == DiscoveryLimits.txtPairs)
        let large = (0..<20).map { Array("k\($0)=".utf8) + Array(repeating: 0x41, count: 200) }
        let kept = TXTRecord.pairs(of: large)
        #expect(kept.count == 6)
        #expect(kept.reduce(0) { $0 + $1.key.utf8.count + $1.value.count + 2 } <= DiscoveryLimits.txtRecordBytes)
    }

    @Test func ourOwnRecordIsCheckedAtItsLimits() throws {
        let fits = TXTPair(key: "k", value: Array(repeating: 0x41, count: 253))
        #expect(try TXTRecord.strings(of: [fits]).map(\.count) == [255])
        #expect(throws: TXTRecord.Refusal.pairTooLong(key: "k", bytes: 256)) {
            try TXTRecord.strings(of: [TXTPair(key: "k", value: fits.value + [0x41])])
        }
        let five = (0..<5).map { TXTPair(key: "\($0)", value: fits.value) }
        let rest = TXTPair(key: "r", value: Array(repeating: 0x41, count: 17))
        #expect(try TXTRecord.strings(of: five + [rest]).reduce(0) { $0 + $1.count + 1 } == 1_300)
        #expect(throws: TXTRecord.Refusal.recordTooLong(bytes: 1_301)) {
            try TXTRecord.strings(of: five + [TXTPair(key: "r", value: rest.value + [0x41])])
        }
    }

    @Test(arguments: ["", "a=b", "schlüssel", "a\u{0}", "a\n"])
    func ourOwnKeysMustBePrintableASCII(key: String) {
        #expect(throws: TXTRecord.Refusal.key(key)) { try TXTRecord.strings(of: [TXTPair(key: key, value: [])]) }
    }

    @Test func refusalsSayWhatWouldBeRight() {
        let message = TXTRecord.Refusal.recordTooLong(bytes: 1_301).message
        #expect(message == "the discovery info takes 1301 bytes in all; shorten it to at most 1300")
    }

    @Test func aListOfAvahisHoldsTheLastStringFirst() {
        let strings = ["a=1", "b=2", "c=3"].map { Array($0.utf8) }
        TXTRecord.withList(strings) { list in
            #expect(TXTRecord.strings(of: list, lastFirst: true) == strings)
            #expect(TXTRecord.strings(of: list, lastFirst: false) == strings.reversed())
        }
        #expect(TXTRecord.strings(of: nil, lastFirst: true).isEmpty)
    }
}

@Suite struct InstanceNameTests {
    @Test func alternativesAreNumberedAndStillFit() throws {
        #expect(InstanceName.alternative(to: "alice") == "alice #2")
        #expect(InstanceName.alternative(to: "alice #2") == "alice #3")
        let long = String(repeating: "ü", count: 31)
        let next = InstanceName.alternative(to: long)
        #expect(next.hasSuffix(" #2"))
        try InstanceName.check(next)
    }

    @Test func namesAreOneLabel() throws {
        try InstanceName.check("a")
        try InstanceName.check(String(repeating: "a", count: 63))
        for name in ["", String(repeating: "a", count: 64), "a\u{0}b"] {
            #expect(throws: InstanceName.Invalid.self) { try InstanceName.check(name) }
        }
    }
}
