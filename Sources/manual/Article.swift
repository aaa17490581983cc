/// The part of a manual page that people write: Markdown in `Articles`, of which only this is understood. `#` begins a section and `##` a
/// part of one; then come paragraphs, lists of `-`, tables of two columns (a term and what it means), and blocks between lines of three
/// backticks. A paragraph that is `@calls` is where a list made by the program goes.
struct Article: Hashable {
    struct Section: Hashable {
        let title: String
        var blocks: [Block]
    }

    enum Block: Hashable {
        case heading(String)
        case paragraph(String)
        case bullets([String])
        case terms([Term])
        /// Lines as they are, such as commands and what they print.
        case literal([String])
        /// What the program itself makes, by its name.
        case generated(String)
    }

    struct Term: Hashable {
        let term: String
        let meaning: String
    }

    /// What an article must not have.
    enum Fault: Error, Hashable {
        case textBeforeTheFirstSection(String)
        case notTwoColumns(String)
        case blockWithoutEnd
    }

    private(set) var sections: [Section] = []

    /// The sections that stand in the middle of a page.
    var beforeExamples: [Section] { self.sections.filter { $0.title != "Examples" } }
    /// Those that stand at its end.
    var examples: [Section] { self.sections.filter { $0.title == "Examples" } }

    /// Throws a ``Fault`` where the text is no such article.
    init(_ text: String) throws(Fault) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
        while let line = lines.first {
            if line.isEmpty {
                lines.removeFirst()
            } else if line.hasPrefix("# ") {
                lines.removeFirst()
                self.sections.append(Section(title: String(line.dropFirst(2)), blocks: []))
            } else {
                let block = try Self.block(&lines)
                guard !self.sections.isEmpty else { throw .textBeforeTheFirstSection(line) }
                self.sections[self.sections.count - 1].blocks.append(block)
            }
        }
    }

    /// Takes the block that the lines begin with.
    private static func block(_ lines: inout ArraySlice<String>) throws(Fault) -> Block {
        let first = lines[lines.startIndex]
        if first.hasPrefix("## ") {
            lines.removeFirst()
            return .heading(String(first.dropFirst(3)))
        }
        if first.hasPrefix("```") {
            lines.removeFirst()
            guard let end = lines.firstIndex(of: "```") else { throw .blockWithoutEnd }
            defer { lines = lines[(end + 1)...] }
            return .literal(Array(lines[..<end]))
        }
        let own = lines.prefix { !$0.isEmpty && !$0.hasPrefix("```") && !$0.hasPrefix("#") }
        lines = lines[own.endIndex...]
        if first.hasPrefix("| ") { return .terms(try Self.terms(Array(own))) }
        if first.hasPrefix("- ") { return .bullets(Self.items(own)) }
        if first.hasPrefix("@"), own.count == 1 { return .generated(String(first.dropFirst())) }
        return .paragraph(own.joined(separator: " "))
    }

    /// The items of a list. A line that does not begin with a hyphen continues the item before it.
    private static func items(_ lines: ArraySlice<String>) -> [String] {
        lines.reduce(into: []) { items, line in
            let text = line.hasPrefix("- ") ? String(line.dropFirst(2)) : "\(items.popLast() ?? "") \(Self.trimmed(line[...]))"
            items.append(text)
        }
    }

    /// The rows of a table, without its head.
    private static func terms(_ lines: [String]) throws(Fault) -> [Term] {
        var terms: [Term] = []
        for line in lines {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast().map(Self.trimmed)
            guard cells.count == 2 else { throw .notTwoColumns(line) }
            terms.append(Term(term: cells[0], meaning: cells[1]))
        }
        return Array(terms.dropFirst(2))
    }

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
