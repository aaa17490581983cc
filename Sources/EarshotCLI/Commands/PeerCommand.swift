import ArgumentParser

struct PeerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peer", abstract: "Give a peer a name of your own.", subcommands: [PeerNameCommand.self])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
