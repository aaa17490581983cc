import ArgumentParser
import EarshotClient
import EarshotSafety

struct DistrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "distrust", abstract: "Revoke trust in a peer and end the session with it.")

    @Argument(help: .peer, completion: .provenPeer)
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        let peer = try await options.withClient { client in
            let found = try await client.peer(name)
            // For a blocked peer, the call would unblock it.
            return try await found.value.trust == .blocked ? found : client.setTrust(.unknown, of: name)
        }
        if options.json { try Standard.write(json: peer.json) }
        let shown = peer.value.name.escapedForDisplay
        switch peer.value.trust.known {
        case .trusted?:
            Standard.note(
                "\(shown) is still trusted: an authority in [identity] has signed its certificate; to refuse it: earshot block \(shown)")
        case .blocked?:
            // As the user typed it: another peer may use the peer's display name.
            Standard.note(
                "\(shown) is blocked, and therefore not trusted; to unblock it: earshot unblock \(name.escapedForDisplay)")
        default: Standard.note("\(shown) is no longer trusted")
        }
    }
}
