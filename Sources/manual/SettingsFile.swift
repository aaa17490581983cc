/// The commented example of the settings file, taken apart: what each key is for stands above it.
struct SettingsFile: Hashable {
    struct Key: Hashable {
        let name: String
        /// What holds where the key is not set; empty where nothing does.
        let value: String
        /// The comment above it.
        let comment: String
    }

    struct Section: Hashable {
        let name: String
        var keys: [Key]
        /// A comment that no key follows.
        var comment: String
    }

    /// What stands before the first section.
    let preface: String
    let sections: [Section]

    init(_ text: String) {
        var preface: [String] = []
        var sections: [Section] = []
        var comment: [String] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("["), let end = line.firstIndex(of: "]") {
                if sections.isEmpty { preface = comment } else { sections[sections.count - 1].comment += comment.joined(separator: "\n") }
                comment = []
                sections.append(Section(name: String(line[line.index(after: line.startIndex)..<end]), keys: [], comment: ""))
            } else if line.hasPrefix("# ") || line == "#" {
                comment.append(String(line.dropFirst(2)))
            } else if line.hasPrefix("#") || line.contains("="), let equals = line.firstIndex(of: "="), !sections.isEmpty {
                let name = String(line[..<equals]).filter { $0 != "#" && $0 != " " }
                let value = line[line.index(after: equals)...].drop { $0 == " " }
                sections[sections.count - 1].keys.append(Key(name: name, value: String(value), comment: comment.joined(separator: "\n")))
                comment = []
            }
        }
        if !sections.isEmpty { sections[sections.count - 1].comment += comment.joined(separator: "\n") }
        self.preface = preface.joined(separator: "\n")
        self.sections = sections
    }
}
