import ArgumentParser
import EarshotControl
import EarshotSafety

struct DistrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "distrust", abstract: "Take trust back, and end the session with the peer.")

    @Argument(help: .peer, completion: .provenPeer)
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        let peer = try await options.withClient { client in try await client.setTrust(.unknown, of: name) }
        if options.json { try Standard.write(json: peer.json) }
        Standard.note("\(peer.value.name.escapedForDisplay) is no longer trusted")
    }
}
