/// Finds state of the core that others than its concern can write. Judged is every struct that ``NodeCore`` stores, directly or in others.
///
/// A stored `var` is `private`, `private(set)` or `fileprivate(set)`, so that each change is a named method. Open may be a part that is a
/// concern itself, because nothing in it is open: its methods are called in place. As Swift lets a caller assign such a part as a whole, no
/// file of the core's extensions assigns to more than a property of the core itself.
struct OpenStorage {
    /// Plain values: settings, and rows that are stored or handed out. A concern that stores one does not let others write it.
    private static let values: Set<String> = [
        "CoreSettings", "Resource", "StoredTransfer", "ByteStream", "Message.Recipient", "Invitation", "StoredPeer", "StoredSession",
    ]
    /// Properties that may be open, each with its reason.
    private static let open: Set<String> = [
        // A generator has no state that anybody reads.
        "NodeCore.random",
        // Only the core sets it. With `private(set)`, the compiler takes a look at it for an access to the whole core.
        "NodeCore.now",
        // Transfers charge the peer of an earlier input.
        "NodeCore.cause",
    ]

    private struct Property {
        let file: Int
        let line: Int
        let name: String
        let isOpen: Bool
        /// The type, if it is a name without anything around it.
        let type: String?
        /// All types that the declaration names.
        let types: [String]
    }

    private struct Declaration {
        var isPrivate = false
        var properties: [Property] = []
    }

    private let root: String
    private var structs: [String: Declaration] = [:]
    private(set) var faults: [(file: Int, fault: CoreRules.Fault)] = []
    /// The structs that store the state.
    private(set) var judged: Set<String> = []

    /// Finds the faults in all files of the core, whose state is that of `root`.
    init(in files: [[SourceLine]], root: String = "NodeCore") {
        self.root = root
        for (index, lines) in files.enumerated() { self.read(lines, of: index) }
        self.judge(root)
        for (index, lines) in files.enumerated() { self.findAssignments(in: lines, of: index) }
    }

    private mutating func add(_ file: Int, _ line: Int, _ what: String) {
        self.faults.append((file, CoreRules.Fault(line: line, rule: .storage, what: what)))
    }

    // MARK: Reading

    private mutating func read(_ lines: [SourceLine], of file: Int) {
        let declaration = /^ *(?:@\w+(?:\(\w+\))? )?((?:[a-z]+ )*)(struct|class|enum|extension|protocol) (\w+(?:\.\w+)*)/
        // The types around a line, each with the depth of its members.
        var types: [(path: String, hasStorage: Bool, depth: Int)] = []
        var depth = 0
        for (index, line) in lines.enumerated() {
            if let type = types.last, type.depth == depth, type.hasStorage, let property = self.property(line.code, file, index + 1) {
                self.structs[type.path, default: Declaration()].properties.append(property)
            }
            guard line.code.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) else { continue }
            var declared = depth == types.last?.depth ?? 0 ? line.code.firstMatch(of: declaration) : nil
            for character in line.code where character == "{" || character == "}" {
                if character == "}" {
                    if types.last?.depth == depth { types.removeLast() }
                    depth -= 1
                    continue
                }
                depth += 1
                guard let match = declared else { continue }
                declared = nil
                let path = (types.last.map { $0.path + "." } ?? "") + match.3
                let hasStorage = match.2 == "struct" || match.2 == "class"
                if hasStorage { self.structs[path, default: Declaration()].isPrivate = match.1.contains("private") }
                types.append((path, hasStorage, depth))
            }
        }
    }

    /// Returns the stored property that a line declares.
    private func property(_ code: String, _ file: Int, _ line: Int) -> Property? {
        guard code.contains("var ") || code.contains("let "), !code.contains("static "),
            let match = code.firstMatch(of: /^ *(?:@\w+(?:\(\w+\))? )?((?:[a-z]+(?:\([a-z]+\))? )*)(var|let) (\w+)(.*)$/)
        else { return nil }
        // A computed property has braces where a stored one has its value.
        if match.4.split(separator: "=", maxSplits: 1).first?.contains("{") == true { return nil }
        return Property(
            file: file, line: line, name: String(match.3), isOpen: match.2 == "var" && !match.1.contains("private"),
            type: match.4.firstMatch(of: /^(?:: | = )([A-Z]\w*(?:\.[A-Z]\w*)*)(?:<.*>)?(?:$|\(| )/).map { String($0.1) },
            types: match.4.matches(of: /\b[A-Z]\w*(?:\.[A-Z]\w*)*/).map { String($0.0) })
    }

    private mutating func findAssignments(in lines: [SourceLine], of file: Int) {
        let assignment = #/(self\.\w+(?:\.\w+|\?|!|\[[^\]]*\])+) (?:[-+*\/%&|^]|&[-+*])?= /#
        let start = "extension \(self.root) {"
        var isInside = false
        for (index, line) in lines.enumerated() {
            if line.code.hasPrefix(start) { isInside = true } else if line.code.hasPrefix("}") { isInside = false }
            guard isInside, line.code.contains("= ") else { continue }
            for match in line.code.matches(of: assignment) { self.add(file, index + 1, "\(match.1) is assigned") }
        }
    }

    // MARK: Judging

    /// Adds the open properties of a struct, and of all structs that it stores.
    private mutating func judge(_ path: String) {
        guard let declaration = self.structs[path], !Self.values.contains(path), self.judged.insert(path).inserted else { return }
        for property in declaration.properties {
            for type in property.types { if let other = self.resolve(type, in: path) { self.judge(other) } }
            guard property.isOpen, !declaration.isPrivate, !Self.open.contains("\(path).\(property.name)") else { continue }
            if let type = property.type, let part = self.resolve(type, in: path), !Self.values.contains(part) { continue }
            self.add(property.file, property.line, "\(path).\(property.name) is open")
        }
    }

    /// Returns the struct for which a name stands inside another one.
    private func resolve(_ name: String, in path: String) -> String? {
        var scope = path.split(separator: ".").map(String.init)
        while true {
            let full = (scope + [name]).joined(separator: ".")
            if self.structs[full] != nil { return full }
            guard scope.popLast() != nil else { return nil }
        }
    }
}
