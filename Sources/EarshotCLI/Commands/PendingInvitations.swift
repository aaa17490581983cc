import EarshotClient
import EarshotSafety

/// Finds the invitation that a person means to answer.
enum PendingInvitations {
    /// What a person may give of an invitation's id at least, in characters: the inviter has chosen it, and four of them spell words.
    static let idPrefixMinimum = 8

    /// The pending incoming invitation of that id, of that peer, or of that beginning of an id, in this order.
    static func find(_ text: String, _ client: ControlClient) async throws -> ControlAPI.Invitation {
        let pending = try await client.invitations().value.invitations.filter { $0.direction == .incoming && $0.state == .pending }
        let id = text.lowercased()
        if let exact = pending.first(where: { $0.id == id }) { return exact }
        do {
            // The daemon decides whom a name means: a stranger must not be answered in the place of a friend of the same name.
            let peer = try await client.peer(text).value
            if let invitation = pending.first(where: { $0.peerID == peer.id }) { return invitation }
            throw CommandFailure(
                .data, "there is no pending invitation from \(peer.name.escapedForDisplay)",
                hint: "see which ones there are: earshot invitations")
        } catch ControlError.problem(let problem) where problem.code == "unknown-peer" {
            let matches = id.count >= Self.idPrefixMinimum ? pending.filter { $0.id.hasPrefix(id) } : []
            guard let match = matches.first else { throw ControlError.problem(problem) }
            guard matches.count == 1 else {
                throw CommandFailure(
                    .data, "\(text.escapedForDisplay) may mean several invitations",
                    hint: (["give more of the id:"] + matches.map { "  \($0.id)  from \($0.peerName.escapedForDisplay)" })
                        .joined(separator: "\n"))
            }
            return match
        }
    }
}
