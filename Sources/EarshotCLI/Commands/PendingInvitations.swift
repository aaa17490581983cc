import EarshotClient
import EarshotSafety

/// Finds the invitation that the user wants to answer.
enum PendingInvitations {
    /// Returns the pending incoming invitation with that id, from that peer, or with that beginning of an id, in this order.
    static func find(_ text: String, _ client: ControlClient) async throws -> ControlAPI.Invitation {
        let all = try await client.invitations(all: true).invitations.filter { $0.direction == .incoming }
        let pending = all.filter { $0.state == .pending }
        let id = text.lowercased()
        if let exact = pending.first(where: { $0.id.description == id }) { return exact }
        do {
            // The daemon resolves the name: a stranger must not be answered instead of a friend of the same name.
            let peer = try await client.peer(text).value
            if let invitation = pending.first(where: { $0.peerID == peer.id }) { return invitation }
            throw Self.none(of: peer, all)
        } catch ControlError.problem(let problem) where problem.code == .unknownPeer {
            let matches = pending.filter { $0.id.isNamed(id, atLeast: Words.chosenIDPrefixMinimum) }
            guard let match = matches.first else {
                if let offer = pending.last(where: { $0.peerID == .unprovenDevice && $0.peerName == text }) { throw Self.unproven(offer) }
                // The invitation of a stranger remains known after the peer itself is forgotten.
                let former = all.last { $0.id.description == id || $0.peerName == text || $0.peerID.description == text.uppercased() }
                throw former.flatMap(Self.over) ?? CommandFailure(ControlError.problem(problem), peer: text)
            }
            guard matches.count == 1 else {
                throw CommandFailure(
                    .data, "\(text.escapedForDisplay) matches several invitations",
                    hint: (["give more of the id:"] + matches.map { "  \($0.id)  from \($0.peerName.escapedForDisplay)" })
                        .joined(separator: "\n"))
            }
            return match
        }
    }

    /// The failure for the name of a device that shows no certificate: anyone can use that name.
    private static func unproven(_ offer: ControlAPI.Invitation) -> CommandFailure {
        let (name, id) = (offer.peerName.escapedForDisplay, Words.short(offer.id))
        return CommandFailure(
            .denied, "\(name) proves no identity, and anyone can use its name", hint: "name the offer by its id: \(id)")
    }

    /// Returns the failure for a peer without a pending invitation; `all` are the incoming invitations, oldest first.
    static func none(of peer: ControlAPI.Peer, _ all: [ControlAPI.Invitation]) -> CommandFailure {
        let name = peer.name.escapedForDisplay
        // The same peer with a new key, or an impostor.
        if let other = all.last(where: { $0.state == .pending && $0.peerName == peer.name }) {
            guard other.peerID != .unprovenDevice else { return Self.unproven(other) }
            let key = Words.short(other.peerID)
            return CommandFailure(
                .data,
                "there is no pending invitation from the \(name) that is known here (\(Words.short(peer.id))); "
                    + "another key, \(key), uses that name",
                hint: "compare digits first: earshot verify \(key); then: earshot accept \(key)")
        }
        return all.last { $0.peerID == peer.id }.flatMap(Self.over)
            ?? CommandFailure(
                .data, "there is no pending invitation from \(name)", hint: "list the invitations: earshot invitations")
    }

    /// The failure for an invitation that expired or was withdrawn; `nil` for all others.
    private static func over(_ invitation: ControlAPI.Invitation) -> CommandFailure? {
        let name = invitation.peerName.escapedForDisplay
        let isOffer = invitation.offer != nil
        let hint =
            isOffer ? "send it again from the device" : "invite again, there or here: earshot invite \(Words.short(invitation.peerID))"
        let what = isOffer ? "offer" : "invitation"
        switch invitation.state {
        case .known(.timedOut):
            let time = Words.time(invitation.expiresAt)
            return CommandFailure(.temporary, "the \(what) from \(name) expired at \(time)", hint: hint)
        case .known(.cancelled): return CommandFailure(.data, "\(name) withdrew the \(what)", hint: hint)
        case .known, .unknown: return nil
        }
    }
}
