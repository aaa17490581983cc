extension Mdoc {
    /// Returns an argument for a synopsis, as the words of a macro's line.
    static func synopsis(_ argument: CommandDump.Argument) -> String {
        let value = Self.word(argument.valueName ?? "value")
        let dots = argument.isRepeating ? " ..." : ""
        let flag = argument.flags.last.map { "Fl \($0)" } ?? ""
        let inner =
            switch argument.kind {
            case "flag": flag
            case "option": "\(flag) Ar \(value)"
            default: "\(argument.parsingStrategy == "postTerminator" ? "Fl - " : "")Ar \(value)\(dots)"
            }
        guard argument.isOptional else { return inner }
        let after = argument.kind == "positional" ? "" : dots
        return "Oo \(inner) Oc\(after)"
    }

    /// Writes a list of arguments with their meanings.
    mutating func list(_ arguments: [CommandDump.Argument]) {
        let explained = arguments.filter { $0.abstract != nil || $0.discussion != nil }
        guard !explained.isEmpty else { return }
        self.raw(".Bl -tag -width Ds -compact")
        for argument in explained {
            let value = Self.word(argument.valueName ?? "value")
            switch argument.kind {
            case "positional": self.raw(".It Ar \(value)")
            case "flag": self.raw(".It " + argument.flags.map { "Fl \($0)" }.joined(separator: " , "))
            default: self.raw(".It " + argument.flags.map { "Fl \($0) Ar \(value)" }.joined(separator: " , "))
            }
            argument.abstract.map { self.prose($0) }
            argument.discussion.map { self.prose($0) }
            if argument.kind == "option", let value = argument.defaultValue { self.prose("(default: \(value))") }
        }
        self.raw(".El")
    }
}
