import ArgumentParser
import EarshotControl
import EarshotSafety
import Synchronization

struct InviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Ask a peer for a session, and wait for the answer.")

    @Argument(help: .peer, completion: .invitablePeer)
    var peer: String
    @Option(name: .long, help: "A word with it, up to 8 KiB.")
    var context: String?
    @Option(name: .long, help: ArgumentHelp("How long to wait, such as 30, 1.5, 30s or 2min.", valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, peer) = (self.options, self.peer)
        let request = ControlAPI.InvitationRequest(
            peer: peer, context: self.context.map { Base64Bytes(Array($0.utf8)) }, timeoutSeconds: self.timeout?.value)
        try await options.withClient { client in
            await NameWarning(client: client).tell(of: peer)
            let invitation = try await Self.invite(client, request)
            if options.json { try Standard.write(json: invitation.json) }
            try Self.judge(invitation.value)
        }
    }

    /// Makes the invitation and follows it to its end; an interruption withdraws it.
    private static func invite(
        _ client: ControlClient, _ request: ControlAPI.InvitationRequest
    ) async throws -> ControlReply<ControlAPI.Invitation> {
        // Subscribed first, so that a decision is seen however soon it comes.
        let events = try await client.events()
        let pending = PendingInvitation()
        return try await Interrupts.takingBack {
            guard let id = pending.id.withLock({ $0 }) else { return }
            try? await client.withdraw(id)
        } _: {
            let made = try await client.invite(request, wait: false)
            guard made.value.state == .pending else { return made }
            let id = made.value.id
            pending.id.withLock { $0 = id }
            Standard.note("waiting for \(made.value.peerName.escapedForDisplay) to answer")
            try await events.forEach { event in
                switch event.value.type {
                case .known(.invitationResolved): return event.value.invitation?.id != id
                // The decision may be among what was missed.
                case .known(.gap): return try await client.invitation(id).value.state == .pending
                default: return true
                }
            }
            return try await client.invitation(id)
        }
    }

    /// The exit code of a decision.
    private static func judge(_ invitation: ControlAPI.Invitation) throws {
        let name = invitation.peerName.escapedForDisplay
        let reason = invitation.error?.message
        switch invitation.state {
        // Nobody was asked, and perhaps nobody is there.
        case .known(.accepted) where invitation.createdAt == invitation.expiresAt:
            Standard.note("there is a session with \(name) already; say something: earshot send \(name) hello")
        case .known(.accepted): Standard.note("\(name) accepted; say something: earshot send \(name) hello")
        case .known(.declined): throw CommandFailure(.denied, "\(name) declined")
        case .known(.timedOut):
            throw CommandFailure(
                .temporary, "\(name) did not answer in time" + (reason.map { ": \($0.escapedForDisplay)" } ?? ""),
                hint: "try again, and let it wait longer: earshot invite --timeout 2min \(name)")
        case .known(.cancelled): throw CommandFailure(.failure, "the invitation of \(name) was withdrawn")
        case .known(.failed), .known(.pending), .unknown:
            throw CommandFailure(
                code: invitation.error?.code ?? "", message: reason ?? "the invitation of \(name) failed", peer: invitation.peerName)
        }
    }
}

/// The id of the invitation that is to be withdrawn when a signal comes.
private final class PendingInvitation: Sendable {
    let id = Mutex<String?>(nil)
}
