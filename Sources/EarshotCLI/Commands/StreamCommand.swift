import ArgumentParser

struct StreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream", abstract: "Pipe standard input to standard output on another machine.",
        discussion: """
            On one machine, run `tar c folder | earshot stream open bob backup`; on the other, `earshot stream accept backup | tar x`. \
            The order does not matter.
            """,
        subcommands: [StreamOpenCommand.self, StreamAcceptCommand.self, StreamListCommand.self, StreamCancelCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
