import FoundationEssentials

/// The part of the argument parser's `--experimental-dump-help` that a manual page needs.
struct CommandDump: Codable, Hashable {
    struct Command: Codable, Hashable {
        let commandName: String
        let abstract: String?
        let discussion: String?
        let shouldDisplay: Bool?
        let subcommands: [Command]?
        let arguments: [Argument]?

        /// The visible verbs, without the parser's own `help`, which repeats the option.
        var verbs: [Command] { (self.subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" } }
        /// The visible arguments.
        var shown: [Argument] { (self.arguments ?? []).filter { $0.shouldDisplay != false } }
    }

    struct Argument: Codable, Hashable {
        struct Name: Codable, Hashable {
            let kind: String
            let name: String
        }

        /// `positional`, `option` or `flag`.
        let kind: String
        let names: [Name]?
        let valueName: String?
        let abstract: String?
        let discussion: String?
        let defaultValue: String?
        let isOptional: Bool
        let isRepeating: Bool
        let parsingStrategy: String?
        let shouldDisplay: Bool?

        /// The flags for mdoc's `Fl`, which adds the first hyphen. The long flag comes last.
        var flags: [String] {
            (self.names ?? []).map { $0.kind == "short" ? $0.name : "-\($0.name)" }.sorted { $0.count < $1.count }
        }
    }

    let command: Command

    init(json: [UInt8]) throws {
        self = try JSONDecoder().decode(CommandDump.self, from: Data(json))
    }
}
