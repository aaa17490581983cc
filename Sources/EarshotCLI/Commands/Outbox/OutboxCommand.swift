import ArgumentParser

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List or cancel the messages that wait for peers that are away.",
        subcommands: [OutboxListCommand.self, OutboxCancelCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
