import ArgumentParser

/// Lets `--socket` and `--json` stand before the verb as well as after it: users write both.
enum ArgumentOrder {
    /// Commands with subcommands.
    private static let verbsOfTwoWords: Set<String> = {
        let root = EarshotCommand.configuration
        // The words after `identity` belong to another program.
        var verbs: Set<String> = ["identity"]
        for group in root.groupedSubcommands {
            for command in group.subcommands where !command.configuration.subcommands.isEmpty {
                if let verb = command.configuration.commandName { verbs.insert(verb) }
            }
        }
        return verbs
    }()

    /// Returns the arguments with leading common options moved after the verb (of two words for `file` and the like).
    static func verbFirst(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var common: [String] = []
        while let first = rest.first {
            if first == "--socket", rest.count > 1 {
                common += rest.prefix(2)
                rest = rest.dropFirst(2)
            } else if first == "--json" || first.hasPrefix("--socket=") {
                common.append(first)
                rest = rest.dropFirst()
            } else {
                break
            }
        }
        guard !common.isEmpty, let verb = rest.first, !verb.hasPrefix("-") else { return arguments }
        let words = self.verbsOfTwoWords.contains(verb) && rest.count > 1 ? 2 : 1
        return rest.prefix(words) + common + rest.dropFirst(words)
    }
}
