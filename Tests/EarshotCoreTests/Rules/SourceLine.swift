/// A line of Swift, its comment separated from its code. The code omits the text of strings and keeps their interpolated expressions.
struct SourceLine {
    var code = ""
    var comment = ""

    private enum Place {
        /// Code or an interpolated expression, with the number of its open parentheses.
        case code(open: Int)
        case string(isLong: Bool)
        case lineComment
        case blockComment(depth: Int)
    }

    /// Returns the lines of a file. The parser knows comments, strings of one or several lines, and interpolation. It does not know raw
    /// strings or regular expressions, because the core has none.
    static func lines(of source: String) -> [SourceLine] {
        var lines = [SourceLine()]
        var places = [Place.code(open: 0)]
        let text = Array(source)
        var index = 0
        func comes(_ token: String) -> Bool { text[index...].starts(with: token) }
        while index < text.count {
            let character = text[index]
            var length = 1
            switch places[places.count - 1] {
            case .code(let open):
                if comes("//") {
                    places.append(.lineComment)
                } else if comes("/*") {
                    (length, _) = (2, places.append(.blockComment(depth: 1)))
                } else if character == "\"" {
                    let isLong = comes("\"\"\"")
                    (length, _) = (isLong ? 3 : 1, places.append(.string(isLong: isLong)))
                    lines[lines.count - 1].code += "\""
                } else if character == ")", open == 0, places.count > 1 {
                    places.removeLast()
                    lines[lines.count - 1].code += ")"
                } else if character != "\n" {
                    if character == "(" { places[places.count - 1] = .code(open: open + 1) }
                    if character == ")" { places[places.count - 1] = .code(open: max(0, open - 1)) }
                    lines[lines.count - 1].code.append(character)
                }
            case .string(let isLong):
                if comes("\\(") {
                    (length, _) = (2, places.append(.code(open: 0)))
                    lines[lines.count - 1].code += "("
                } else if character == "\\" {
                    length = 2
                } else if comes(isLong ? "\"\"\"" : "\"") {
                    (length, _) = (isLong ? 3 : 1, places.removeLast())
                    lines[lines.count - 1].code += "\""
                }
            case .lineComment:
                if character == "\n" { places.removeLast() } else { lines[lines.count - 1].comment.append(character) }
            case .blockComment(let depth):
                if comes("*/") || comes("/*") {
                    length = 2
                    places[places.count - 1] = .blockComment(depth: comes("*/") ? depth - 1 : depth + 1)
                    if comes("*/"), depth == 1 { places.removeLast() }
                }
            }
            if character == "\n" { lines.append(SourceLine()) }
            index += length
        }
        return lines
    }

    /// A name in the code, with the characters before and after it, blanks ignored.
    struct Name {
        let text: String
        let range: Range<String.Index>
        let before: Character?
        let after: Character?
    }

    /// Every word of the code that is a name or a keyword.
    var names: [Name] {
        var names: [Name] = []
        var index = self.code.startIndex
        while index < self.code.endIndex {
            guard self.code[index].isLetter || self.code[index] == "_" else {
                index = self.code.index(after: index)
                continue
            }
            let end = self.code[index...].firstIndex { !$0.isLetter && !$0.isNumber && $0 != "_" } ?? self.code.endIndex
            names.append(
                Name(
                    text: String(self.code[index..<end]), range: index..<end,
                    before: self.code[..<index].last { $0 != " " }, after: self.code[end...].first { $0 != " " }))
            index = end
        }
        return names
    }
}
