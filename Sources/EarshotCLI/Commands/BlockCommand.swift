import ArgumentParser
import EarshotClient
import EarshotSafety

struct BlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "block", abstract: "Refuse a peer for good, and end what there is with it.")

    @Argument(help: .peer, completion: .peer(notYet: .blocked))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        try await options.withClient { client in
            let peer = try await client.peer(name).value
            let pending = try await client.invitations().value.invitations
                .first { $0.direction == .incoming && $0.state == .pending && $0.peerID == peer.id }
            if let pending { _ = try await client.respond(to: pending.id, .block) }
            // By what the person typed: for a key that was never proven the daemon wants the whole id.
            let blocked = try await client.setTrust(.blocked, of: name)
            if options.json { try Standard.write(json: blocked.json) }
            Standard.note("\(blocked.value.name.escapedForDisplay) is blocked")
        }
    }
}
