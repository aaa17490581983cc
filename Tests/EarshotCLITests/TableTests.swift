import Testing

@testable import EarshotCLI

struct TableTests {
    private let table = Table(
        [.init(title: "NAME", isFlexible: true), .init(title: "ID"), .init(title: "WHERE", isFlexible: true)],
        rows: [["bob", "ABC", "here"], ["a very long name indeed", "DEF", "-"]])

    @Test func columnsAreAligned() {
        #expect(
            self.table.render(width: nil, bold: false) == """
                NAME                     ID   WHERE
                bob                      ABC  here
                a very long name indeed  DEF  -

                """)
    }

    @Test func aNarrowTerminalCutsWhatMayGiveWay() {
        let lines = self.table.render(width: 24, bold: false).split(separator: "\n")
        #expect(lines.allSatisfy { DisplayWidth.of(String($0)) <= 24 })
        #expect(lines.last == "a very long…  DEF  -")
    }

    @Test func wideCharactersCountTwice() {
        #expect(DisplayWidth.of("漢字") == 4)
        #expect(DisplayWidth.of("e\u{301}") == 1)
        #expect(DisplayWidth.cut("漢字漢字", to: 5) == "漢字…")
    }
}
