import Testing

@testable import manual

@Suite struct MdocTests {
    @Test(arguments: [
        (".Dd is no macro here", "\\&.Dd is no macro here"), ("it's", "it\\(aqs"), ("a\\b", "a\\eb"), ("~/x", "\\(ti/x"),
        ("give --check-config (or -o)", "give \\-\\-check\\-config (or \\-o)"), ("zero-width", "zero-width"),
    ])
    func textIsNotObeyed(text: String, source: String) {
        #expect(Mdoc.escaped(text) == source)
    }

    @Test(arguments: [
        ("peer|id", "peer|id"), ("Ar", "\\&Ar"), ("Fl", "\\&Fl"), ("|", "\\&|"), ("a b", "\"a b\""), ("a\"b", "a\\(dqb"),
        ("dir|-", "dir|-"),
    ])
    func wordsAreNoMacros(word: String, source: String) {
        #expect(Mdoc.word(word) == source)
    }

    @Test func everySentenceHasALine() {
        var page = Mdoc()
        page.prose("One. Two is after 3 s. or so! Three")
        #expect(page.text == "One.\nTwo is after 3 s. or so!\nThree\n")
    }
}
