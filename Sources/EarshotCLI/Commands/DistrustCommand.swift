import ArgumentParser
import EarshotClient
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
        let shown = peer.value.name.escapedForDisplay
        if peer.value.trust == .trusted {
            Standard.note(
                "\(shown) stays trusted: an authority of [identity] has signed its certificate; to refuse it, earshot block \(shown)")
        } else {
            Standard.note("\(shown) is no longer trusted")
        }
    }
}
