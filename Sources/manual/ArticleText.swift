/// A sentence of an article, taken apart at its spaces: words, which may hold code between backticks, emphasis between asterisks, or the
/// name of a manual page such as `earshot(1)`.
struct ArticleText: Hashable {
    enum Segment: Hashable {
        case plain(String)
        case code(String)
        case emphasis(String)
        case page(name: String, section: String)
    }

    /// The words, separated by spaces outside of code and emphasis.
    private(set) var words: [[Segment]] = []

    init(_ text: String) {
        var rest = text[...]
        var word: [Segment] = []
        var plain = ""
        func flush() {
            if !plain.isEmpty { word += Self.pages(plain) }
            plain = ""
        }
        while let character = rest.first {
            if let (segment, after) = Self.marked(rest, after: plain) {
                flush()
                word.append(segment)
                rest = after
                continue
            }
            rest.removeFirst()
            guard character == " " else {
                plain.append(character)
                continue
            }
            flush()
            if !word.isEmpty { self.words.append(word) }
            word = []
        }
        flush()
        if !word.isEmpty { self.words.append(word) }
    }

    /// Returns code or emphasis at the beginning of the text, and the rest. An asterisk within a word is only an asterisk.
    private static func marked(_ text: Substring, after plain: String) -> (Segment, Substring)? {
        for mark in ["`", "**", "*"] where text.hasPrefix(mark) {
            let inner = text.dropFirst(mark.count)
            if mark != "`", !(plain.isEmpty || plain.hasSuffix("(")) { return nil }
            guard let end = Self.position(of: mark, in: inner), end > inner.startIndex else { continue }
            let content = String(inner[..<end])
            return (mark == "`" ? .code(content) : .emphasis(content), inner[end...].dropFirst(mark.count))
        }
        return nil
    }

    private static func position(of mark: String, in text: Substring) -> Substring.Index? {
        text.indices.first { text[$0...].hasPrefix(mark) }
    }

    /// Splits a word that contains the name of a manual page.
    private static func pages(_ word: String) -> [Segment] {
        let start = word.drop { $0 == "(" }
        guard let open = start.firstIndex(of: "("), open > start.startIndex else { return [.plain(word)] }
        let name = start[..<open]
        let after = start[start.index(after: open)...]
        guard let section = after.first, ("1"..."8").contains(section), after.dropFirst().first == ")",
            name.allSatisfy({ $0.isLowercase || "-.".contains($0) })
        else { return [.plain(word)] }
        let before = word[..<start.startIndex]
        let rest = after.dropFirst(2)
        return (before.isEmpty ? [] : [.plain(String(before))]) + [.page(name: String(name), section: String(section))]
            + (rest.isEmpty ? [] : [.plain(String(rest))])
    }
}
