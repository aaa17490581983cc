import ArgumentParser
import EarshotClient
import EarshotSafety

struct LeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "leave", abstract: "End the session with a peer.")

    @Argument(help: .peer, completion: .member)
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        try await options.withClient { client in
            let peer = try await client.peer(name).value
            let sessions = try await client.sessions().sessions
            guard let session = sessions.first(where: { $0.members.contains { $0.peerID == peer.id } }) else {
                throw CommandFailure(
                    .denied, "there is no session with \(peer.name.escapedForDisplay)", hint: "list the sessions: earshot sessions")
            }
            try await client.leave(session.id)
            if options.json { try Standard.write(json: try ControlJSON.encode(session)) }
            Standard.note("left the session with \(peer.name.escapedForDisplay)")
        }
    }
}
