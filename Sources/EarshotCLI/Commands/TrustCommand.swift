import ArgumentParser
import EarshotClient
import EarshotSafety

struct TrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust", abstract: "Trust a peer: accept its invitations automatically.")

    @Argument(help: .peer, completion: .peer(notYet: .trusted))
    var peer: String
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long to trust the peer, such as 30min, 1h or 7d; default: permanently.", valueName: "time"))
    var time: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if let time = self.time, time.value <= 0 { throw ValidationError("--for is more than 0") }
    }

    mutating func run() async throws {
        let (options, name, time) = (self.options, self.peer, self.time?.duration)
        try await options.withClient { client in
            await NameWarning(client: client).tell(of: name)
            // Subscribes first, so that the acceptance of a pending invitation is not missed.
            let events = try await client.events()
            let peer = try await client.setTrust(.trusted, of: name, lasting: time)
            if options.json { try Standard.write(json: peer.json) }
            Standard.note(
                "\(peer.value.name.escapedForDisplay) is trusted" + (peer.value.trustExpiresAt.map { " until \(Words.time($0))" } ?? ""))
            for words in try await Self.invitations(of: peer.value.id, client, events) { Standard.note(words) }
        }
    }

    /// Returns the invitations that remain pending: with `from_trusted = accept`, the daemon accepts an invitation to a session.
    private static func invitations(of peer: PeerID, _ client: ControlClient, _ events: ControlEvents) async throws -> [String] {
        func waiting() async throws -> [ControlAPI.Invitation] {
            try await client.invitations().invitations.filter {
                $0.direction == .incoming && $0.state == .pending && $0.peerID == peer
            }
        }
        let policy = try await client.policy(of: peer).value
        let isAccepted = policy.decisions.contains { $0.action == .invite && $0.decision == .allow }
        var pending = try await waiting()
        guard isAccepted, pending.contains(where: { $0.group == nil }) else { return pending.map(Self.stillWaits) }
        for try await event in events {
            if event.invitation.map({ $0.peerID != peer || $0.state == .pending }) ?? (event.type != .gap) { continue }
            pending = try await waiting()
            if !pending.contains(where: { $0.group == nil }) { break }
        }
        return pending.map(Self.stillWaits)
    }

    private static func stillWaits(_ invitation: ControlAPI.Invitation) -> String {
        let (name, id) = (invitation.peerName.escapedForDisplay, Words.short(invitation.id))
        let group = invitation.group.map { " to \($0.name.escapedForDisplay)" } ?? ""
        let what = invitation.offer == nil ? "invitation" : "offer"
        return "the \(what) from \(name)\(group) is still pending: earshot accept \(id)"
    }
}
