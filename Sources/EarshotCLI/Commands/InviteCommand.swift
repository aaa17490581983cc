import ArgumentParser
import EarshotClient
import EarshotSafety
import FoundationEssentials

struct InviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invite a peer to a session, and wait for the answer.")

    @Argument(help: .peer, completion: .invitablePeer)
    var peer: String
    @Option(name: .long, help: "Message shown to the peer, up to 8 KiB.")
    var context: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to wait, in seconds or with a unit, such as 30, 1.5s or 2min; default: as in the settings, 5min.",
            valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, peer) = (self.options, self.peer)
        let (context, timeout) = (Array((self.context ?? "").utf8), self.timeout?.duration)
        try await options.withClient { client in
            await NameWarning(client: client).tell(of: peer)
            let invitation = try await Self.invite(client, peer, context, timeout)
            if options.json { try Standard.write(json: invitation.json) }
            try Self.judge(invitation.value)
        }
    }

    /// Creates the invitation and waits for its outcome. A signal withdraws the invitation.
    private static func invite(
        _ client: ControlClient, _ peer: String, _ context: [UInt8], _ timeout: Duration?
    ) async throws -> ControlReply<ControlAPI.Invitation> {
        // Subscribes first, so that an early decision is not missed.
        let events = try await client.events()
        let pending = PendingReply<ControlReply<ControlAPI.Invitation>>()
        let takeBack: @Sendable () async -> Bool = {
            guard let made = await pending.answer()?.value else { return true }
            guard made.state == .pending else { return false }
            // Runs in a task of its own: withdrawing may end the waiting task, and must not be cancelled with it.
            return await Task {
                do throws(ControlError) {
                    try await client.withdraw(made.id)
                    return true
                } catch {
                    // The daemon refuses if the peer accepted a moment before: the session exists, and the command reports that.
                    if case .problem = error { return false }
                    return true
                }
            }.value
        }
        return try await Interrupts.takingBackUnlessOver(takeBack) {
            // The API's times have a precision of a millisecond.
            let began = Date().addingTimeInterval(-0.001)
            let made: ControlReply<ControlAPI.Invitation>
            do {
                made = try await pending.ask { try await client.invite(peer, context: context, timeout: timeout) }
            } catch let error as ControlError {
                // The daemon may have created the invitation, and no command waits for its answer.
                if error.leavesOpen { await Self.withdraw(client, to: peer, since: began) }
                throw error
            }
            guard made.value.state == .pending else { return made }
            let id = made.value.id
            let name = made.value.peerName.escapedForDisplay
            let time = Words.wait(from: made.value.createdAt, to: made.value.expiresAt)
            Standard.note("waiting\(time) for \(name) to answer" + (await Words.accepting(client).map { "; on \(name): \($0)" } ?? ""))
            waiting: for try await event in events {
                switch event.type {
                case .known(.invitationResolved) where event.invitation != nil: if event.invitation?.id == id { break waiting }
                // The decision may be among the missed events, or unreadable.
                case .known(.gap), .known(.invitationResolved):
                    guard try await client.invitation(id).state == .pending else { break waiting }
                default: break
                }
            }
            return try await client.invitation(id)
        }
    }

    /// Withdraws the invitation of a request whose answer was lost, if a daemon is running again.
    private static func withdraw(_ client: ControlClient, to peer: String, since: Date) async {
        // The daemon resolves the name.
        guard let id = try? await client.peer(peer).id else { return }
        let invitations = (try? await client.invitations().invitations) ?? []
        for invitation in invitations where invitation.direction == .outgoing && invitation.peerID == id {
            if let made = invitation.createdAt, made >= since { _ = try? await client.withdraw(invitation.id) }
        }
    }

    /// Reports the outcome, or throws the failure with its exit status.
    private static func judge(_ invitation: ControlAPI.Invitation) throws {
        let name = invitation.peerName.escapedForDisplay
        let reason = invitation.error?.message
        switch invitation.state {
        // Equal times mean that no peer was asked: the session existed already.
        case .known(.accepted) where invitation.createdAt != nil && invitation.createdAt == invitation.expiresAt:
            Standard.note("there is already a session with \(name); send a message: earshot send \(name) hello")
        case .known(.accepted): Standard.note("\(name) accepted; send a message: earshot send \(name) hello")
        case .known(.declined): throw CommandFailure(.denied, "\(name) declined", code: "declined")
        case .known(.timedOut):
            throw CommandFailure(
                .temporary, "\(name) did not answer in time" + (reason.map { ": \($0.escapedForDisplay)" } ?? ""),
                hint: reason == nil
                    ? "try again with a longer timeout: earshot invite --timeout 1h \(name)"
                    : "find out which step fails: earshot doctor \(name)")
        case .known(.cancelled): throw CommandFailure(.failure, "the invitation to \(name) was withdrawn", code: "cancelled")
        case .known(.failed), .known(.pending), .unknown:
            throw CommandFailure(
                code: invitation.error?.code, message: reason ?? "the invitation to \(name) failed", peer: invitation.peerName)
        }
    }
}

extension ControlError {
    /// Whether the daemon may have carried out the request.
    fileprivate var leavesOpen: Bool {
        switch self {
        case .silent, .lost, .malformed: true
        case .unreachable, .problem, .source, .output, .cancelled: false
        }
    }
}
