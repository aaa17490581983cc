import EarshotSafety
import Testing

@Suite struct SafeNameTests {
    /// Names with which other programs were made to write elsewhere, and their relatives.
    static let hostile: [String] = [
        "", ".", "..", "/", "a/b", "/etc/passwd", "../../.ssh/authorized_keys", "..//..", "./x", "x/", "x/..",
        // A slash that is not a Character of its own.
        "..\u{2F}\u{338}x", "a\u{2F}\u{200D}b", "/\u{301}",
        "\0", "a\0b", "report.pdf\0.exe", "a\nb", "a\r", "\u{1B}[2J", "\u{7F}", "\u{85}", "\u{9B}31m", "\t",
        " ", "   ", "\u{A0}", "\u{2003}\u{3000}", "\u{200B}", "\u{FEFF}\u{2060}", "\u{3164}",
        String(repeating: "a", count: 256), String(repeating: "ä", count: 128), String(repeating: "x", count: 100_000),
    ]

    @Test(arguments: hostile) func aHostileNameIsRefused(name: String) {
        let error = #expect(throws: NameRejected.self) { try SafeName(name) }
        #expect(error?.description.utf8.contains { $0 < 0x20 || $0 == 0x7F } == false)
        #expect((error?.description.utf8.count ?? 0) < 1200)
    }

    @Test(arguments: [
        "a", "report.pdf", "...", "..a", ".hidden", "-rf", " leading", "trailing ", "a b", "~", "$(id)", "CON", "C:\\x", "\u{202E}gpj.exe",
        String(repeating: "a", count: 255), String(repeating: "ä", count: 127) + "a", "日本語", "‥", "∕",
    ])
    func harmlessNamesAreAccepted(name: String) throws {
        #expect(try SafeName(name).description.utf8.elementsEqual(name.utf8))
    }

    @Test(arguments: [
        ("report.pdf", 2, "report (2).pdf"), ("report", 2, "report (2)"), ("archive.tar.gz", 3, "archive (3).tar.gz"),
        ("a.TAR.zst", 2, "a (2).TAR.zst"), (".tar.gz", 2, ".tar (2).gz"), ("archive.tar", 2, "archive (2).tar"),
        ("guitar.gz", 2, "guitar (2).gz"),
        (".hidden", 2, ".hidden (2)"), ("a.", 2, "a. (2)"), ("v1.2 final report", 2, "v1.2 final report (2)"),
        ("x.12345678901234567", 2, "x.12345678901234567 (2)"), ("...", 2, ".. (2)."),
    ])
    func theNumberComesBeforeTheExtension(name: String, number: Int, expected: String) throws {
        let result = try SafeName(name).numbered(number).description
        #expect(result == expected || (name == "..." && result == "... (2)"))
    }

    @Test func aNumberKeepsTheNameWithinItsLimit() throws {
        for name in [
            String(repeating: "a", count: 255), String(repeating: "ä", count: 125) + ".text", "a" + String(repeating: "日", count: 84),
        ] {
            let result = try SafeName(name).numbered(10_000)
            #expect(result.description.utf8.count <= SafeName.byteLimit)
            #expect(result.description.contains(" (10000)"))
            #expect(throws: Never.self) { try SafeName(result.description) }
        }
    }

    /// Swift compares strings by canonical equivalence; the kernel by bytes.
    @Test func namesAreComparedByBytes() throws {
        #expect(try SafeName("e\u{301}") != SafeName("\u{E9}"))
        #expect(try Set([SafeName("e\u{301}"), SafeName("\u{E9}")]).count == 2)
    }
}
