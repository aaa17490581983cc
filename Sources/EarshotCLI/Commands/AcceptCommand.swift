import ArgumentParser
import EarshotClient
import EarshotSafety

struct AcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accept a peer's invitation, or the files that a LocalSend device offers.")

    @Argument(help: ArgumentHelp("The peer, or the invitation's id.", valueName: "peer|id"), completion: .inviter)
    var invitation: String
    @Flag(name: .long, help: "Also trust the peer: accept its future invitations or offers automatically.")
    var always = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, invitation, always) = (self.options, self.invitation, self.always)
        try await options.withClient { client in
            let invitation = try await PendingInvitations.find(invitation, client)
            if invitation.peerID != .unprovenDevice { await NameWarning(client: client).tell(of: invitation.peerID) }
            let answer = try await client.respond(to: invitation.id, .accept, always: always ? true : nil)
            if options.json { try Standard.write(json: answer.json) }
            let name = answer.value.peerName.escapedForDisplay
            if let offer = answer.value.offer {
                return Standard.note("accepted from \(name): \(Words.offer(offer).escapedForDisplay)")
            }
            let group = answer.value.group.map { " to \($0.name.escapedForDisplay)" } ?? ""
            Standard.note("accepted the invitation from \(name)\(group)")
        }
    }
}
