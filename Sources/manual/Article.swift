/// The handwritten part of a manual page: Markdown in `Articles`, of which the parser understands a subset. `#` begins a section, and `##`
/// a subsection. A section has paragraphs, lists of `-`, tables of two columns (a term and its meaning), and blocks between lines of three
/// backticks. The program replaces a paragraph such as `@calls` by a generated list.
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
        /// Verbatim lines, such as commands and their output.
        case literal([String])
        /// The name of a block that the program generates.
        case generated(String)
    }

    struct Term: Hashable {
        let term: String
        let meaning: String
    }

    /// A fault of an article.
    enum Fault: Error, Hashable {
        case textBeforeTheFirstSection(String)
        case notTwoColumns(String)
        case blockWithoutEnd
    }

    private(set) var sections: [Section] = []

    /// The sections in the middle of a page.
    var beforeExamples: [Section] { self.sections.filter { $0.title != "Examples" } }
    /// The sections at the end of a page.
    var examples: [Section] { self.sections.filter { $0.title == "Examples" } }

    /// Throws a ``Fault`` if the text is not a valid article.
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

    /// Removes the first block from the lines and returns it.
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
