import ArgumentParser
import EarshotClient
import EarshotSafety

struct GroupInviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invite peers to a group, and wait for their answers.")

    @Argument(help: .group, completion: .group)
    var group: String
    @Argument(help: .peer, completion: .groupInvitablePeer)
    var peers: [String]
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
        let (options, name, peers) = (self.options, self.group, self.peers)
        let (context, timeout) = (Array((self.context ?? "").utf8), self.timeout?.duration)
        try await options.withClient { client in
            let group = try await client.group(name).value
            if let warning = Self.warning(of: group) { Standard.note(warning) }
            // Subscribes first, so that an early decision is not missed.
            let events = try await client.events()
            let made = PendingReply<ControlReply<ControlAPI.InvitationList>>()
            try await Interrupts.takingBack {
                for invitation in await made.answer()?.value.invitations ?? [] where invitation.state == .pending {
                    _ = try? await client.withdraw(invitation.id)
                }
            } _: {
                let invitations = try await made.ask { try await client.invite(peers, to: group.id, context: context, timeout: timeout) }
                try await Self.follow(invitations.value.invitations, to: group, client, events, json: options.json)
            }
        }
    }

    /// The number of removals left at which the inviter is warned.
    static let fewRemovals = 16

    /// The warning about removals: a member that joins when none are left cannot be removed.
    static func warning(of group: ControlAPI.Group) -> String? {
        guard let left = group.removalsLeft, left <= Self.fewRemovals else { return nil }
        let name = group.name.escapedForDisplay
        let words =
            left == 0
            ? "no more members can be removed from \(name)" : "only \(Words.count(left, "more member")) can be removed from \(name)"
        return "\(words); to make a new group, use earshot group create NAME --from \(Words.short(group.id))"
    }

    /// Reports each invitation when it is decided.
    private static func follow(
        _ invitations: [ControlAPI.Invitation], to group: ControlAPI.Group, _ client: ControlClient, _ events: ControlEvents, json: Bool
    ) async throws {
        var outcomes = GroupInvitationOutcomes(group: group.name)
        var open = Set(invitations.filter { $0.state == .pending }.map(\.id))
        func decide(_ invitation: ControlAPI.Invitation) throws {
            open.remove(invitation.id)
            if json { try Standard.write(json: try ControlJSON.encode(invitation)) }
            outcomes.add(invitation)
        }
        for invitation in invitations where invitation.state != .pending { try decide(invitation) }
        if let first = invitations.first(where: { $0.state == .pending }) {
            let time = Words.wait(from: first.createdAt, to: first.expiresAt)
            let next = await Words.accepting(client).map { "; there: \($0)" } ?? ""
            Standard.note("waiting\(time) for \(Words.count(open.count, "peer")) to answer\(next)")
            for try await event in events {
                if let invitation = event.invitation, event.type == .invitationResolved, open.contains(invitation.id) {
                    try decide(invitation)
                } else if event.type == .gap || !event.unreadable.isEmpty {
                    // The decision may be among the missed events, or unreadable.
                    for id in open {
                        let invitation = try await client.invitation(id).value
                        if invitation.state != .pending { try decide(invitation) }
                    }
                }
                if open.isEmpty { break }
            }
        }
        try outcomes.end()
    }
}
