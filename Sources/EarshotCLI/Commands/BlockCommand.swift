import ArgumentParser
import EarshotClient
import EarshotSafety

struct BlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "block", abstract: "Block a peer, and end its session.")

    @Argument(help: .peer, completion: .peer(notYet: .blocked))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        // Uses the text as typed: for a key that was never proven or never seen, the daemon requires the whole id.
        let peer = try await options.withClient { client in try await client.setTrust(.blocked, of: name) }
        if options.json { try Standard.write(json: peer.json) }
        Standard.note("\(peer.value.name.escapedForDisplay) is blocked")
    }
}
