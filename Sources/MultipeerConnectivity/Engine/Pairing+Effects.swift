import Earshot
import Foundation

extension Pairing {
    /// An action that the engine performs for the pairing.
    enum Effect {
        /// Invites a peer, and calls ``invitationBegan(_:_:)`` or ``invitationFailed(_:)``.
        case invite(PeerID, Envelope, for: Duration)
        case withdraw(InvitationID)
        /// Accepts an invitation, and calls ``agreed(_:)`` or ``acceptanceFailed(_:hasSession:)``.
        case accept(InvitationID, of: PeerID)
        case decline(InvitationID)
        /// Lets the advertiser of a type ask the program, and calls ``answered(_:of:into:)``.
        case ask(InvitationID, MCPeerID, type: String, Data?)
        /// Leaves all of the node's sessions with a peer.
        case leave(PeerID)
        /// Lets the program check the certificate of a peer, and calls ``checked(_:_:isGood:)``.
        case check(PeerID, SessionToken, MCPeerID)
        case tell(SessionToken, MCPeerID, MCSessionState)
        /// Reports that the peer is connected. Data that it has sent meanwhile goes to the program.
        case joined(PeerID)
        /// Reports that the pair is over, and its transfers with it.
        case parted(Pair)
        /// Tells a peer the addresses of other members, and with `isFirst` those of this side.
        case introduce([Introduction.Member], to: PeerID, isFirst: Bool)
        /// Lets the node dial a peer at addresses from an introduction; `nil` ends that.
        case reach(PeerID, [String]?)
        /// Calls ``listed(_:)`` if the node knows addresses of the peer.
        case look(PeerID)
        /// Calls ``timePassed()`` after this time.
        case wake(after: Duration)
    }

    /// The time in which a lost connection may be restored.
    static let lossGrace: Duration = .seconds(2)
    /// The time in which two peers that have agreed must connect. The invited one may not be able to reach the other.
    static let connectionTime: Duration = .seconds(20)
    /// The lifetime of an introduction.
    static let introductionTime: Duration = .seconds(30)
    /// The time in which an introduced peer may answer, before the program's own invitation replaces the one of the introduction.
    static let introductionGrace: Duration = .seconds(1)
    /// The time in which only the peer with the lower id invites, after both were introduced.
    static let secondCall: Duration = .seconds(5)

    /// An invitation that this side has not answered.
    struct Asked {
        let invitation: InvitationID
        let peer: MCPeerID
        let envelope: Envelope
    }
}
