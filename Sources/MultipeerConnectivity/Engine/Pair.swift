import Earshot
import Foundation

/// A remote peer that is in a local session or is joining it.
struct Pair {
    /// The progress of joining.
    enum Stage: Equatable {
        /// This side has invited the peer, which may not have answered.
        case inviting(InvitationID?)
        /// Both sides have agreed.
        case agreed
        /// The connection is established, and the program checks the certificate.
        case checking
        /// The program has accepted the certificate. The peer's program has not accepted this side's yet.
        case approved
        case connected
    }

    let token: SessionToken
    let began: Duration
    /// Whether the program has asked for the pair or agreed to it. The program then learns how the attempt ends.
    var isWanted: Bool
    /// Whether this side has invited the peer because members of the session have introduced it.
    let isIntroduction: Bool
    /// The peer. Its display name is the proven one, once there is one.
    var peer: MCPeerID
    var stage: Stage
    /// Addresses at which the peer says that it can be reached.
    var addresses: [String]?
    /// The node's session of the pair.
    var sessionID: SessionID?
    /// The time of the agreement, which the program learned as `connecting`.
    var agreedAt: Duration?
    /// The time at which the connection was lost, while it is lost.
    var lostAt: Duration?
    /// The peer's first introduction, which shows that its program has accepted this side's certificate.
    var introduction: Introduction?
    /// The program's invitation of a peer that was already invited because of an introduction, or that seemed connected. It is made when
    /// that invitation fails, or when the old connection proves to be dead.
    var next: (envelope: Envelope, until: Duration)?

    /// Whether both sides want the pair. It then has a place in the session.
    var hasAgreed: Bool {
        if case .inviting = self.stage { false } else { true }
    }
}

/// A peer that was introduced by members of a session or by the program.
struct Introduced {
    let token: SessionToken
    let peer: MCPeerID
    let until: Duration
    /// The time at which this side invites if the other side has not. The peer with the lower id may invite first.
    let callAt: Duration
    var hasCalled = false
    /// Whether the program still has to learn how its own invitation of the peer ends.
    var isOwed: Bool
}

/// Peers' invitations that are not answered yet.
struct Questions {
    /// Invitations that the program is deciding.
    var asking: [PeerID: InvitationID] = [:]
    /// Invitations that wait until a member introduces the inviter.
    var unintroduced: [PeerID: InvitationID] = [:]
    /// Invitations that crossed one from this side.
    var crossed: [PeerID: Pairing.Asked] = [:]

    func contains(_ invitation: InvitationID, of id: PeerID) -> Bool {
        self.asking[id] == invitation || self.unintroduced[id] == invitation || self.crossed[id]?.invitation == invitation
    }

    /// Returns the invitation that may be accepted when its inviter is introduced.
    func waiting(of id: PeerID) -> InvitationID? { self.unintroduced[id] ?? self.asking[id] }

    mutating func remove(_ invitation: InvitationID, of id: PeerID) {
        if self.asking[id] == invitation { self.asking[id] = nil }
        if self.unintroduced[id] == invitation { self.unintroduced[id] = nil }
        if self.crossed[id]?.invitation == invitation { self.crossed[id] = nil }
    }
}
