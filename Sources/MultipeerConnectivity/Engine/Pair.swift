import Earshot
import Foundation

/// A remote peer in one of our sessions, or on its way into it.
struct Pair {
    /// How far it is.
    enum Stage: Equatable {
        /// We have invited the peer; there may be no answer yet.
        case inviting(InvitationID?)
        /// Both have agreed.
        case agreed
        /// The connection stands, and the program looks at the certificate.
        case checking
        /// The program has accepted the certificate; the peer's program has not accepted ours yet.
        case approved
        case connected
    }

    let token: SessionToken
    let began: Duration
    /// Whether the program has asked for it, or agreed to it: then the program hears how the attempt ends.
    var isWanted: Bool
    /// Whether we have invited the peer because members of the session have introduced it.
    let isIntroduction: Bool
    /// The display name that the peer proved, once there is one.
    var peer: MCPeerID
    var stage: Stage
    /// Addresses at which the peer says that it can be reached.
    var addresses: [String]?
    /// The pair's session as the node has it.
    var sessionID: SessionID?
    /// When both had agreed, which the program has heard as `connecting`.
    var agreedAt: Duration?
    /// Since when the connection is gone, while it is.
    var lostAt: Duration?
    /// The peer's first introduction: its program has accepted our certificate.
    var introduction: Introduction?
    /// An invitation of the program's to a peer that an introduction had invited, or that seemed connected. It is made when that invitation comes to
    /// nothing, or when that connection turns out to be a dead program's.
    var next: (envelope: Envelope, until: Duration)?

    /// Whether both sides want it: it has a place in the session.
    var hasAgreed: Bool {
        if case .inviting = self.stage { false } else { true }
    }
}

/// A peer that members of a session have introduced to us, or that the program has.
struct Introduced {
    let token: SessionToken
    let peer: MCPeerID
    let until: Duration
    /// When this side invites, if the other has not: the peer with the lower id has the first word.
    let callAt: Duration
    var hasCalled = false
    /// Whether the program waits to hear how its own invitation of the peer ends.
    var isOwed: Bool
}

/// Invitations of peers that are not answered yet.
struct Questions {
    /// The program looks at it.
    var asking: [PeerID: InvitationID] = [:]
    /// It waits until a member introduces its inviter.
    var unintroduced: [PeerID: InvitationID] = [:]
    /// It crossed an invitation of ours.
    var crossed: [PeerID: Pairing.Asked] = [:]

    func contains(_ invitation: InvitationID, of id: PeerID) -> Bool {
        self.asking[id] == invitation || self.unintroduced[id] == invitation || self.crossed[id]?.invitation == invitation
    }

    /// One that may be accepted once its inviter is introduced.
    func waiting(of id: PeerID) -> InvitationID? { self.unintroduced[id] ?? self.asking[id] }

    mutating func remove(_ invitation: InvitationID, of id: PeerID) {
        if self.asking[id] == invitation { self.asking[id] = nil }
        if self.unintroduced[id] == invitation { self.unintroduced[id] = nil }
        if self.crossed[id]?.invitation == invitation { self.crossed[id] = nil }
    }
}
