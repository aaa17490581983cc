import FoundationEssentials

/// What the argument parser tells of a program: the part of its `--experimental-dump-help` that a manual page needs.
struct CommandDump: Codable, Hashable {
    struct Command: Codable, Hashable {
        let commandName: String
        let abstract: String?
        let discussion: String?
        let shouldDisplay: Bool?
        let subcommands: [Command]?
        let arguments: [Argument]?

        /// The verbs that a person sees; the parser's own `help` is an option by another name.
        var verbs: [Command] { (self.subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" } }
        /// The arguments that a person sees.
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
        let shouldDisplay: Bool?

        /// As mdoc's `Fl` takes them, the long one last: a hyphen comes by itself.
        var flags: [String] {
            (self.names ?? []).map { $0.kind == "short" ? $0.name : "-\($0.name)" }.sorted { $0.count < $1.count }
        }
    }

    let command: Command

    init(json: [UInt8]) throws {
        self = try JSONDecoder().decode(CommandDump.self, from: Data(json))
    }
}
