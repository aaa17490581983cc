/// The parsed `Config/earshotd.conf`: each key with its default and the comment above it.
struct SettingsFile: Hashable {
    struct Key: Hashable {
        let name: String
        /// The default; empty if there is none.
        let value: String
        /// The comment above the key, on one line.
        let comment: String
    }

    struct Section: Hashable {
        let name: String
        var keys: [Key] = []
        /// A comment that no key follows.
        var comment = ""
    }

    private(set) var sections: [Section] = []

    init(_ text: String) {
        var comment: [Substring] = []
        // The empty section at the end concludes the last one; the comment before the first section is for readers of the file.
        let lines: [Substring] = text.split(separator: "\n") + ["[]"]
        for line in lines {
            if line.hasPrefix("[") {
                if let last = self.sections.indices.last { self.sections[last].comment = comment.joined(separator: " ") }
                comment = []
                self.sections.append(Section(name: line.filter { $0 != "[" && $0 != "]" }))
            } else if line.hasPrefix("# ") {
                comment.append(line.dropFirst(2))
            } else if line.hasPrefix("#"), let equals = line.firstIndex(of: "="), let last = self.sections.indices.last {
                let name = line[..<equals].filter { $0 != "#" && $0 != " " }
                let value = line[equals...].dropFirst().drop { $0 == " " }
                self.sections[last].keys.append(Key(name: name, value: String(value), comment: comment.joined(separator: " ")))
                comment = []
            }
        }
        self.sections.removeLast()
    }
}
