import ArgumentParser
import EarshotControl
import EarshotSafety

struct TrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust", abstract: "Trust a peer: its invitations are accepted by themselves.")

    @Argument(help: .peer, completion: .peer(notYet: .trusted))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        let peer = try await options.withClient { client in try await client.setTrust(.trusted, of: name) }
        if options.json { try Standard.write(json: peer.json) }
        Standard.note("\(peer.value.name.escapedForDisplay) is trusted")
    }
}
