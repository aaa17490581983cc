import ArgumentParser

struct StreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream", abstract: "Pipe bytes from one machine to another.",
        discussion: """
            On one machine `tar c folder | earshot stream open bob backup`, on the other `earshot stream accept backup | tar x`, in any order.
            """,
        subcommands: [StreamOpenCommand.self, StreamAcceptCommand.self, StreamListCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
