extension Mdoc {
    /// Writes a section of an article, with its heading.
    mutating func section(_ section: Article.Section, generated: (String) -> String? = { _ in nil }) {
        self.raw(".Sh \(section.title.uppercased())")
        if section.title == "Name", case .paragraph(let text)? = section.blocks.first {
            self.name(text)
            return
        }
        var isFirst = true
        for block in section.blocks {
            switch block {
            case .paragraph(let text):
                if !isFirst { self.raw(".Pp") }
                self.text(text)
            case .heading(let title): self.raw(".Ss \(title)")
            case .bullets(let items):
                self.raw(".Bl -bullet")
                for item in items {
                    self.raw(".It")
                    self.text(item)
                }
                self.raw(".El")
            case .terms(let terms):
                self.raw(".Bl -tag -width Ds")
                for term in terms {
                    self.raw(".It Xo")
                    self.text(term.term)
                    self.raw(".Xc")
                    self.text(term.meaning)
                }
                self.raw(".El")
            case .literal(let lines):
                self.raw(".Bd -literal -offset indent")
                for line in lines { self.raw(Self.literal(line)) }
                self.raw(".Ed")
            case .generated(let name): generated(name).map { self.raw($0) }
            }
            // mdoc already puts space before the first paragraph of a section or a subsection.
            if case .heading = block { isFirst = true } else { isFirst = false }
        }
    }

    /// Writes the NAME section from `NAME - description`.
    private mutating func name(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 2)
        self.macro("Nm", String(parts.first ?? ""))
        self.raw(".Nd \(Self.escaped(String(parts.last ?? "")))")
    }

    /// Writes sentences of an article.
    mutating func text(_ text: String) {
        var line: [String] = []
        func flush(_ page: inout Mdoc) {
            if !line.isEmpty { page.prose(line.joined(separator: " ")) }
            line = []
        }
        for word in ArticleText(text).words {
            if case .plain(let text)? = word.first, word.count == 1 {
                line.append(text)
            } else {
                flush(&self)
                self.raw(Self.marked(word))
            }
        }
        flush(&self)
    }

    /// Returns a macro line for a word that contains markup.
    private static func marked(_ word: [ArticleText.Segment]) -> String {
        var parts: [String] = []
        for (index, segment) in word.enumerated() {
            switch segment {
            case .plain(let text) where index == 0:
                parts += text.allSatisfy { $0 == "(" } ? text.map(String.init) : ["No", Self.word(text), "Ns"]
            case .plain(let text):
                // mdoc attaches punctuation without a space; other text needs `Ns`.
                parts += text.allSatisfy { ".,:;)?!".contains($0) } ? text.map(String.init) : ["Ns", "No", Self.word(text)]
            case .code(let text): parts += [Self.macro(of: text)] + text.split(separator: " ").map { Self.word(String($0), isTyped: true) }
            case .emphasis(let text): parts += ["Em"] + text.split(separator: " ").map { Self.word(String($0)) }
            case .page(let name, let section): parts += ["Xr", name, section]
            }
            if index + 1 < word.count, index > 0, case .plain = segment { parts.append("Ns") }
        }
        // A line cannot begin with punctuation. The macro comes first, and puts an opening parenthesis before its text.
        if parts.first == "(", let macro = parts.firstIndex(where: { $0 != "(" }) {
            parts.insert(parts.remove(at: macro), at: 0)
        }
        return "." + parts.joined(separator: " ")
    }

    /// Returns the macro for code: a path, a command, or another literal.
    private static func macro(of code: String) -> String {
        if code.hasPrefix("/") || code.hasPrefix("~") || code.hasPrefix("Sources/") { return "Pa" }
        return code.contains(" ") || code.hasPrefix("-") ? "Ic" : "Ql"
    }
}
