import ArgumentParser

struct PolicyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy", abstract: "What this machine's rules say of a peer.", subcommands: [PolicyExplainCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
