/// The text of a settings file, which is changed line by line: all comments and other lines stay as they are.
///
/// Lines are read as `earshotd` reads them (earshotd.conf(5)). Text that `earshotd` would refuse is kept: its check reports it.
struct SettingsText {
    /// The name of a setting: its section, and its key in that section.
    struct Name: Hashable {
        /// The section whose keys users choose, and in which case does not matter.
        static let infoSection = "discovery.info"

        let section: String
        let key: String

        /// Parses `SECTION.KEY`. Returns `nil` for a text that cannot be written as a section and a key.
        init?(_ text: String) {
            let prefix = "\(Self.infoSection)."
            if text.hasPrefix(prefix) {
                (self.section, self.key) = (Self.infoSection, String(text.dropFirst(prefix.count)))
            } else {
                guard let dot = text.firstIndex(of: ".") else { return nil }
                (self.section, self.key) = (String(text[..<dot]), String(text[text.index(after: dot)...]))
            }
            let line = Line("\(self.key) = x")
            guard !self.section.isEmpty, !self.key.isEmpty, case .section(self.section) = Line("[\(self.section)]"),
                case .entry(self.key, "x", nil) = line, !text.unicodeScalars.contains(where: \.isControl)
            else { return nil }
        }

        func matches(_ section: String?, _ key: String) -> Bool {
            guard section == self.section else { return false }
            return section == Self.infoSection ? key.lowercased() == self.key.lowercased() : key == self.key
        }
    }

    /// The meaning of one line.
    enum Line: Equatable {
        case section(String)
        /// A key and its value, with the comment behind it.
        case entry(String, String, comment: String?)
        /// A comment, an empty line, or a line that `earshotd` refuses.
        case other

        init(_ line: String) {
            let text = line.trimmingBlanks
            if text.hasPrefix("["), let close = text.firstIndex(of: "]") {
                self = .section(String(text.dropFirst().prefix { $0 != "]" }).trimmingBlanks)
                guard Self.split(String(text[text.index(after: close)...]))?.value != "" else { return }
                self = .other
            } else if !text.isEmpty, !text.hasPrefix("#"), !text.hasPrefix(";"), !text.hasPrefix("["),
                let equals = text.firstIndex(of: "="),
                let rest = Self.split(String(text[text.index(after: equals)...]))
            {
                self = .entry(String(text[..<equals]).trimmingBlanks, rest.value, comment: rest.comment)
            } else {
                self = .other
            }
        }

        /// Splits the text behind an equals sign into value and comment. Returns `nil` for malformed quotes.
        private static func split(_ text: String) -> (value: String, comment: String?)? {
            let trimmed = text.trimmingBlanks
            guard trimmed.hasPrefix("\"") else { return self.splitComment(text) }
            let inner = trimmed.dropFirst()
            guard let close = inner.firstIndex(of: "\"") else { return nil }
            let rest = String(inner[inner.index(after: close)...])
            guard rest.isEmpty || rest.first?.isBlank == true, let end = self.splitComment(rest), end.value.isEmpty else { return nil }
            return (String(inner[..<close]), end.comment)
        }

        private static func splitComment(_ text: String) -> (value: String, comment: String?)? {
            var previousIsBlank = false
            for index in text.indices {
                if previousIsBlank, text[index] == "#" || text[index] == ";" {
                    return (String(text[..<index]).trimmingBlanks, String(text[index...]).trimmingBlanks)
                }
                previousIsBlank = text[index].isBlank
            }
            return (text.trimmingBlanks, nil)
        }
    }

    /// The first lines of a new file.
    static let heading = "# Settings made by earshot config; see earshotd.conf(5). Lines and comments of your own stay.\n"

    private var lines: [String]

    /// Reads the text of a file; `nil` for a new one.
    init(_ text: String?) {
        // By bytes: to Swift, CR and LF are one character.
        let lines = (text ?? Self.heading).utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        self.lines = lines.map { String($0) ?? "" }
        if self.lines.last == "" { self.lines.removeLast() }
    }

    /// The text with a newline behind each line.
    var text: String { self.lines.map { $0 + "\n" }.joined() }

    /// Returns a value as a line spells it. Returns `nil` for a value that no line can hold: there are no escapes.
    static func spelling(of value: String) -> String? {
        guard !value.unicodeScalars.contains(where: \.isControl) else { return nil }
        return [value, "\"\(value)\""].first { spelling in
            guard case .entry("k", let read, nil) = Line("k = \(spelling)") else { return false }
            return read.utf8.elementsEqual(value.utf8)
        }
    }

    /// Sets a value: in the last line that sets it, else at the end of its section, else in a new section.
    mutating func set(_ name: Name, spelling: String) {
        var (section, place, end) = (String?.none, Int?.none, Int?.none)
        for (index, line) in self.lines.enumerated() {
            switch Line(line.withoutReturn) {
            case .section(let next): section = next
            case .entry(let key, _, _): if name.matches(section, key) { place = index }
            case .other: continue
            }
            if section == name.section { end = index }
        }
        let line = "\(name.key) = \(spelling)".trimmingBlanks
        if let place {
            guard case .entry(_, _, let comment?) = Line(self.lines[place].withoutReturn) else { return self.lines[place] = line }
            self.lines[place] = "\(line) \(comment)"
        } else if let end {
            self.lines.insert(line, at: end + 1)
        } else {
            if self.lines.last?.isEmpty == false { self.lines.append("") }
            self.lines += ["[\(name.section)]", line]
        }
    }

    /// Removes all lines that set a value, and keeps the comments behind them. Returns whether there were any.
    mutating func unset(_ name: Name) -> Bool {
        var section: String?
        var kept: [String] = []
        var isFound = false
        for line in self.lines {
            switch Line(line.withoutReturn) {
            case .section(let next): section = next
            case .entry(let key, _, let comment) where name.matches(section, key):
                isFound = true
                if let comment { kept.append(comment) }
                continue
            case .entry, .other: break
            }
            kept.append(line)
        }
        self.lines = kept
        return isFound
    }
}

extension Unicode.Scalar {
    /// Whether a settings file must not contain it.
    fileprivate var isControl: Bool { self.properties.generalCategory == .control && self != "\t" }
}

extension Character {
    fileprivate var isBlank: Bool { self == " " || self == "\t" }
}

extension String {
    /// The text without spaces and tabs at either end.
    fileprivate var trimmingBlanks: String {
        guard let first = self.firstIndex(where: { !$0.isBlank }), let last = self.lastIndex(where: { !$0.isBlank }) else { return "" }
        return String(self[first...last])
    }

    /// The line without the CR of a line end of CR and LF.
    fileprivate var withoutReturn: String {
        self.utf8.last == UInt8(ascii: "\r") ? String(decoding: self.utf8.dropLast(), as: UTF8.self) : self
    }
}
