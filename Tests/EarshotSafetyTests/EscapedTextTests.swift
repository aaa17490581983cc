import EarshotSafety
import Testing

@Suite struct EscapedTextTests {
    @Test(arguments: [
        ("plain text, äöü 日本語 👍🏽 ❤️", "plain text, äöü 日本語 👍🏽 ❤️"),
        ("", ""),
        ("\u{1B}[1A\u{1B}[2K", "\\e[1A\\e[2K"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("a\r\nb", "a\\r\\nb"),
        ("\0\u{7F}\u{85}\u{9B}", "\\u{0}\\u{7F}\\u{85}\\u{9B}"),
        ("gpj.\u{202E}exe", "gpj.\\u{202E}exe"),
        ("\u{200B}\u{200D}\u{2060}\u{FEFF}\u{AD}", "\\u{200B}\\u{200D}\\u{2060}\\u{FEFF}\\u{AD}"),
        ("\u{2066}\u{2069}\u{200F}\u{61C}", "\\u{2066}\\u{2069}\\u{200F}\\u{61C}"),
        ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ("\u{E000}\u{FFFE}\u{10FFFF}\u{378}", "\\u{E000}\\u{FFFE}\\u{10FFFF}\\u{378}"),
        ("\u{3164}\u{115F}\u{34F}\u{E0041}", "\\u{3164}\\u{115F}\\u{34F}\\u{E0041}"),
        ("C:\\new", "C:\\\\new"),
        ("e\u{301}\u{1B}\u{301}", "e\u{301}\\e\u{301}"),
    ])
    func textIsEscapedToOneLine(input: String, shown: String) {
        #expect(input.escapedForDisplay.unicodeScalars.elementsEqual(shown.unicodeScalars))
    }

    @Test func linesAreKeptOnlyWhereAskedFor() {
        #expect("one\ntwo\r\nthree\rfour\u{1B}".escapedLines == "one\ntwo\nthree\\rfour\\e")
        #expect("one\ntwo".escapedForDisplay == "one\\ntwo")
    }

    /// A text that spells an escape and the escaped character itself are shown differently.
    @Test func anEscapeCannotBeForged() {
        let pairs = [("\u{202E}", "\\u{202E}"), ("\n", "\\n"), ("\u{1B}", "\\e"), ("\\", "\\\\")]
        for (real, spelt) in pairs {
            #expect(real.escapedForDisplay != spelt.escapedForDisplay)
            #expect(real.escapedForDisplay == spelt)
        }
    }

    /// For any input, the output has no character that a terminal interprets or that is invisible.
    @Test func noScalarSlipsThrough() {
        var all = ""
        for value in UInt32(0)...0x10FFFF {
            if let scalar = Unicode.Scalar(value) { all.unicodeScalars.append(scalar) }
        }
        let hidden = all.escapedLines.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: scalar != "\n"
            default: false
            }
        }
        #expect(String(String.UnicodeScalarView(hidden)) == "")
        #expect(all.escapedLines.unicodeScalars.count > 1_112_064)
        #expect(!"a\nb".escapedForDisplay.utf8.contains(0x0A))
    }

    @Test func aSentenceIsEscapedOnce() {
        #expect("no peer \\u{202E} here".escapedOnceMore == "no peer \\u{202E} here")
        #expect("forgotten \u{202E}\t\\n".escapedOnceMore == "forgotten \\u{202E}\\t\\n")
    }
}
