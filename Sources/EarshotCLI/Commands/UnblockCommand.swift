import ArgumentParser
import EarshotClient
import EarshotSafety

struct UnblockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "unblock", abstract: "Unblock a peer.")

    @Argument(help: .peer, completion: .peer(.blocked))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        try await options.withClient { client in
            let found = try await client.peer(name)
            let isBlocked = found.value.trust == .blocked
            // For a peer that is not blocked, the call would revoke trust and end the session.
            let peer = try await isBlocked ? client.setTrust(.unknown, of: name) : found
            if options.json { try Standard.write(json: peer.json) }
            Standard.note("\(peer.value.name.escapedForDisplay) is \(isBlocked ? "no longer" : "not") blocked")
        }
    }
}
