import EarshotWire
import FoundationEssentials
import NIOCore

/// An invitation with what hangs on it.
struct InvitationRecord {
    var invitation: Invitation
    var expiry: Scheduled<Void>?
    /// The connection on which the outgoing invitation was last sent.
    var sentOn: LinkID?
    /// Takes an incoming one back whose inviter stays away.
    var absence: Scheduled<Void>?
    /// Whether it is over because its inviter had gone, and not by anybody's word: sent again, it counts as a new one.
    var hasLapsed = false
    /// A decision is being written to disk: another one comes too late.
    var isDeciding = false
    var waiters: [CheckedContinuation<Invitation, Never>] = []
}

/// Which invitation of each direction is pending with a peer.
struct PendingInvitations: Sendable {
    private var incoming: [PeerID: InvitationID] = [:]
    private var outgoing: [PeerID: InvitationID] = [:]

    subscript(peer: PeerID, direction: Direction) -> InvitationID? {
        switch direction {
        case .incoming: self.incoming[peer]
        case .outgoing: self.outgoing[peer]
        }
    }

    mutating func add(_ invitation: Invitation) {
        switch invitation.direction {
        case .incoming: self.incoming[invitation.peerID] = invitation.id
        case .outgoing: self.outgoing[invitation.peerID] = invitation.id
        }
    }

    mutating func remove(_ invitation: Invitation) {
        guard self[invitation.peerID, invitation.direction] == invitation.id else { return }
        switch invitation.direction {
        case .incoming: self.incoming[invitation.peerID] = nil
        case .outgoing: self.outgoing[invitation.peerID] = nil
        }
    }
}
