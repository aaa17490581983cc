import ArgumentParser
import EarshotSafety

/// Reports a mistyped verb: the argument parser would take it for an argument of `earshot` itself, and complain about its options.
enum CommandNames {
    /// The most letters of a verb that may be wrong, missing or extra for it to be suggested.
    static let typingErrors = 2

    /// Checks the verb, the second word of `file` and the like, and the words after `help`.
    /// - Throws: a `usage` failure that suggests the closest verb.
    static func check(_ arguments: [String]) throws(CommandFailure) {
        let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
        guard let verb = words.first, !verb.hasPrefix("-"), verb != "help" else { return }
        guard let known = Self.verbs.first(where: { $0.name == verb }) else {
            throw Self.unknown(verb, of: "", Self.verbs.map(\.name))
        }
        guard !known.second.isEmpty, let word = words.dropFirst().first, !word.hasPrefix("-"), word != "help" else { return }
        guard known.second.contains(word) else { throw Self.unknown(word, of: verb, known.second) }
    }

    /// The verbs in the order of the help, each with its second words.
    private static let verbs: [(name: String, second: [String])] = EarshotCommand.configuration.groupedSubcommands.flatMap { group in
        group.subcommands.compactMap { command in
            let second = command.configuration.subcommands.compactMap { $0.configuration.commandName }
            return command.configuration.commandName.map { ($0, second) }
        }
    }

    private static func unknown(_ word: String, of verb: String, _ names: [String]) -> CommandFailure {
        let prefix = verb.isEmpty ? "" : "\(verb) "
        let proposal = Self.closest(to: word, names).map { "; did you mean \(prefix)\($0)?" } ?? ""
        return CommandFailure(
            .usage, "unknown command '\(prefix)\(word.escapedForDisplay)'\(proposal)",
            hint: "list the commands: earshot \(prefix)--help")
    }

    /// The name that the word was probably meant to be: the one that needs the fewest changes, if the word is still recognisable.
    static func closest(to word: String, _ names: [String]) -> String? {
        let near = names.map { (name: $0, distance: Self.distance(word.lowercased(), $0)) }
        let most = min(Self.typingErrors, word.count / 2)
        if let best = near.filter({ $0.distance <= most }).min(by: { $0.distance < $1.distance }) { return best.name }
        let completed = names.filter { $0.hasPrefix(word.lowercased()) }
        return completed.count == 1 ? completed.first : nil
    }

    /// The number of letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
    private static func distance(_ word: String, _ name: String) -> Int {
        let (from, to) = (Array(word.unicodeScalars.prefix(64)), Array(name.unicodeScalars))
        var (older, old) = ([Int](), Array(0...to.count))
        for (row, letter) in from.enumerated() {
            var new = [row + 1]
            for (column, other) in to.enumerated() {
                var best = min(old[column] + (letter == other ? 0 : 1), min(old[column + 1], new[column]) + 1)
                if row > 0, column > 0, letter == to[column - 1], other == from[row - 1] { best = min(best, older[column - 1] + 1) }
                new.append(best)
            }
            (older, old) = (old, new)
        }
        return old[to.count]
    }
}
