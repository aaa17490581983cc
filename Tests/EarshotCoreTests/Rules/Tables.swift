/// The names that stand for a hash table according to their declarations: properties, variables, parameters and functions whose type is
/// written as `[A: B]`, `Dictionary`, `Set` or an alias of these, and names that are bound to one of them. Not found: other inferred types,
/// a closure's parameter, a table in an array or in another type's generic argument.
struct Tables {
    /// A table, with the shape of its values if they are tables too.
    indirect enum Shape {
        case table(of: Shape?)
    }

    private(set) var shapes: [String: [Shape]] = [:]
    private var aliases: [String: Shape] = [:]

    /// Collects the declarations of these files that other files can see.
    init(shared files: [[SourceLine]]) {
        for lines in files { self.addAliases(lines) }
        for lines in files { self.add(lines.filter(Self.isShared), declaredOnly: true) }
    }

    /// Returns these tables and all that a file declares.
    func adding(_ lines: [SourceLine]) -> Tables {
        var tables = self
        tables.addAliases(lines)
        tables.add(lines)
        return tables
    }

    /// Whether another file can see the declaration in a line: it is a member of a type, and not local to a function.
    private static func isShared(_ line: SourceLine) -> Bool {
        guard !line.code.contains("private ") else { return false }
        return line.code.contains("package ") || line.code.contains("public ") || line.code.prefix { $0 == " " }.count <= 4
    }

    private mutating func addAliases(_ lines: [SourceLine]) {
        for line in lines {
            let names = line.names
            guard let place = names.firstIndex(where: { $0.text == "typealias" }), place + 1 < names.count,
                let type = line.code.split(separator: "=", maxSplits: 1).dropFirst().first, let shape = self.shape(type)
            else { continue }
            self.aliases[names[place + 1].text] = shape
        }
    }

    /// `declaredOnly`: without parameters, which are their function's own.
    private mutating func add(_ lines: [SourceLine], declaredOnly: Bool = false) {
        for line in lines {
            let names = line.names
            for (index, name) in names.enumerated() {
                let rest = line.code[name.range.upperBound...]
                let isDeclared = index > 0 && ["var", "let"].contains(names[index - 1].text)
                if rest.hasPrefix(": "), isDeclared || !declaredOnly, let shape = self.shape(rest.dropFirst(2)) {
                    self.shapes[name.text, default: []].append(shape)
                }
                guard index > 0 else { continue }
                switch names[index - 1].text {
                case "func":
                    // The last arrow is the function's own; parameters' stand before it.
                    if let arrow = rest.ranges(of: "-> ").last, let shape = self.shape(rest[arrow.upperBound...]) {
                        self.shapes[name.text, default: []].append(shape)
                    }
                case "var", "let":
                    if rest.hasPrefix(" = "), let shape = self.shape(ofValue: rest.dropFirst(3)) {
                        self.shapes[name.text, default: []].append(shape)
                    }
                default: break
                }
            }
        }
    }

    /// Returns the shape of a written type, or `nil` if the type is no table.
    private func shape(_ text: Substring) -> Shape? {
        let type = text.drop { $0 == " " || $0 == "(" }
        for name in ["Set<", "Dictionary<"] where type.hasPrefix(name) {
            guard name == "Dictionary<", let comma = Self.split(type.dropFirst(name.count), at: ",", closedBy: ">") else {
                return .table(of: nil)
            }
            return .table(of: self.shape(type[type.index(after: comma)...]))
        }
        if type.hasPrefix("["), let colon = Self.split(type.dropFirst(), at: ":", closedBy: "]") {
            return .table(of: self.shape(type[type.index(after: colon)...]))
        }
        return self.aliases[String(type.prefix { $0.isLetter || $0.isNumber })]
    }

    /// Returns the shape of an expression that is bound to a name: a new table, or a known one.
    private func shape(ofValue text: Substring) -> Shape? {
        if let shape = self.shape(text) { return shape }
        for name in ["Set(", "Dictionary("] where text.hasPrefix(name) { return .table(of: nil) }
        if text.contains("reduce(into: [:])") { return .table(of: nil) }
        let line = SourceLine(code: String(text))
        for name in line.names {
            for shape in self.shapes[name.text] ?? [] {
                let (reached, rest) = Self.reach(shape, line.code[name.range.upperBound...])
                let next = rest.drop { $0 == " " }
                if let reached, next.isEmpty || [",", "else", "{", "??"].contains(where: next.hasPrefix) { return reached }
            }
        }
        return nil
    }

    /// Follows the subscripts, calls and question marks after a table. Returns the shape that they reach, and the rest of the text.
    static func reach(_ shape: Shape, _ text: Substring) -> (shape: Shape?, rest: Substring) {
        var (shape, rest): (Shape?, Substring) = (shape, text)
        while let first = rest.first {
            if first == "?", !rest.hasPrefix("??") || rest.hasPrefix("??.") {
                rest = rest.dropFirst()
            } else if first == "!" {
                rest = rest.dropFirst()
            } else if first == "[" || first == "(", let end = Self.end(of: rest) {
                if first == "[" {
                    guard case .table(let inner)? = shape else { return (nil, rest) }
                    shape = inner
                }
                rest = rest[end...]
            } else {
                break
            }
        }
        return (shape, rest)
    }

    /// Returns the index after the bracket that closes the first one.
    private static func end(of text: Substring) -> Substring.Index? {
        var depth = 0
        for index in text.indices {
            if "([{".contains(text[index]) { depth += 1 }
            if ")]}".contains(text[index]) { depth -= 1 }
            if depth == 0 { return text.index(after: index) }
        }
        return nil
    }

    /// Returns the index of a separator on the outermost level, before the closing bracket.
    private static func split(_ text: Substring, at separator: Character, closedBy end: Character) -> Substring.Index? {
        var depth = 0
        for index in text.indices {
            let character = text[index]
            if depth == 0, character == separator { return index }
            if depth == 0, character == end { return nil }
            if "([{<".contains(character) { depth += 1 }
            if ")]}>".contains(character) { depth -= 1 }
        }
        return nil
    }
}
