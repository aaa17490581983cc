import ArgumentParser
import EarshotClient
import EarshotSafety

struct RejectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reject", abstract: "Decline a peer's invitation, or the files that a LocalSend device offers.")

    @Argument(help: ArgumentHelp("The peer, or the invitation's id.", valueName: "peer|id"), completion: .inviter)
    var invitation: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, invitation) = (self.options, self.invitation)
        try await options.withClient { client in
            let invitation = try await PendingInvitations.find(invitation, client)
            let answer = try await client.respond(to: invitation.id, .reject)
            if options.json { try Standard.write(json: answer.json) }
            let what = answer.value.offer == nil ? "invitation" : "offer"
            Standard.note("rejected the \(what) from \(answer.value.peerName.escapedForDisplay)")
        }
    }
}
