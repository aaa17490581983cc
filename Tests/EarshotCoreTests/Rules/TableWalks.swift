/// Finds the places in which a file walks a hash table. Swift seeds its hashes anew in each process, so the order would differ each time.
///
/// Seen are `for`, the members of sequences, and what takes a whole sequence, on what ``Tables`` knows for a table. `keys.sorted()` has an
/// order. Where the order does not show, a comment on the line says why: `// order does not show: REASON`.
struct TableWalks {
    private static let members: Set<String> = [
        "map", "flatMap", "compactMap", "mapValues", "compactMapValues", "filter", "sorted", "sort", "first", "last", "reduce", "forEach",
        "allSatisfy", "min", "max", "prefix", "suffix", "dropFirst", "dropLast", "drop", "enumerated", "makeIterator", "popFirst",
        "reversed",
        "joined", "elementsEqual", "starts", "split", "randomElement", "shuffled", "firstIndex", "removeFirst", "lazy", "keys", "values",
        "indices", "startIndex", "description", "partition",
    ]
    /// Looked into by a key, or walked with a condition.
    private static let conditional: Set<String> = ["contains", "count", "removeAll"]
    private static let takers: Set<String> = [
        "Array", "ContiguousArray", "Deque", "OrderedSet", "OrderedDictionary", "Heap", "zip", "String",
    ]

    private(set) var faults: [CoreRules.Fault] = []

    init(in lines: [SourceLine], _ shared: Tables) {
        let tables = shared.adding(lines)
        var index = 0
        while index < lines.count {
            // A chain of calls goes on where lines begin with a full stop.
            var end = index + 1
            while end < lines.count, lines[end].code.drop(while: { $0 == " " }).hasPrefix(".") { end += 1 }
            let chain = lines[index..<end]
            let code = chain.map(\.code).reduce("") { $0.isEmpty ? $1 : $0 + $1.drop { $0 == " " } }
            self.judge(SourceLine(code: code, comment: chain.map(\.comment).joined(separator: " ")), at: index + 1, tables)
            index = end
        }
    }

    private mutating func judge(_ line: SourceLine, at number: Int, _ tables: Tables) {
        let walked = line.names.filter { name in
            (tables.shapes[name.text] ?? []).contains { Self.isWalked(name, $0, in: line) }
        }
        guard let permit = line.comment.ranges(of: "order does not show").first else {
            self.faults += walked.map { CoreRules.Fault(line: number, rule: .walk, what: $0.text) }
            return
        }
        let words = line.comment[permit.upperBound...].split { !$0.isLetter }
        if !line.comment[permit.upperBound...].hasPrefix(": ") || words.count < 2 {
            self.faults.append(CoreRules.Fault(line: number, rule: .reason, what: "no reason is given"))
        }
        // An unnecessary reason would permit a walk that is added there later.
        if walked.isEmpty { self.faults.append(CoreRules.Fault(line: number, rule: .reason, what: "nothing is walked here")) }
    }

    private static func isWalked(_ name: SourceLine.Name, _ shape: Tables.Shape, in line: SourceLine) -> Bool {
        let (reached, rest) = Tables.reach(shape, line.code[name.range.upperBound...])
        guard reached != nil, !rest.hasPrefix(": "), !rest.hasPrefix("keys.sorted()") else { return false }
        if rest.hasPrefix(".") {
            guard !rest.hasPrefix(".keys.sorted()"), !rest.hasPrefix(".keys.count"), !rest.hasPrefix(".values.count") else { return false }
            let member = String(rest.dropFirst().prefix { $0.isLetter })
            let following = rest.dropFirst(1 + member.count).drop { $0 == " " }
            return Self.members.contains(member)
                || Self.conditional.contains(member) && (following.hasPrefix("{") || following.hasPrefix("(where"))
        }
        // Whole: what it is given to decides.
        let path = line.code[..<name.range.lowerBound].reversed().drop { $0.isLetter || $0.isNumber || "._?".contains($0) }
        let before = String(path.reversed()).trimmed
        let word = String(line.code[..<name.range.lowerBound].reversed().drop { $0 != " " }.reversed()).trimmed
        if word.hasSuffix(" in"), line.names.contains(where: { $0.text == "for" }) { return true }
        if before.hasSuffix("+=") || before.hasSuffix("contentsOf:") { return true }
        guard before.hasSuffix("(") else { return false }
        let taker = String(before.dropLast().reversed().prefix { $0.isLetter }.reversed())
        return Self.takers.contains(taker) || before.hasSuffix("](")
    }
}

extension String {
    /// Without the blanks at its end.
    fileprivate var trimmed: String { String(self.reversed().drop { $0 == " " }.reversed()) }
}
