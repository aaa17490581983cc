import ArgumentParser
import EarshotClient
import EarshotSafety

struct UnblockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "unblock", abstract: "Take a block back.")

    @Argument(help: .peer, completion: .peer(.blocked))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        let peer = try await options.withClient { client in try await client.setTrust(.unknown, of: name) }
        if options.json { try Standard.write(json: peer.json) }
        Standard.note("\(peer.value.name.escapedForDisplay) is no longer blocked")
    }
}
