import ArgumentParser

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "List or cancel queued messages, and show the status of sent ones.",
        subcommands: [OutboxListCommand.self, OutboxShowCommand.self, OutboxCancelCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
