import ArgumentParser

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List or cancel queued messages.",
        subcommands: [OutboxListCommand.self, OutboxCancelCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
