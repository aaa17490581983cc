import Earshot
import Foundation

extension Pairing {
    /// What the engine does for it.
    enum Effect {
        /// Invites a peer, and calls ``invitationBegan(_:_:)`` or ``invitationFailed(_:)``.
        case invite(PeerID, Envelope, for: Duration)
        case withdraw(InvitationID)
        /// Accepts an invitation, and calls ``agreed(_:)`` or ``acceptanceFailed(_:hasSession:)``.
        case accept(InvitationID, of: PeerID)
        case decline(InvitationID)
        /// Has the advertiser of a type ask the program, and calls ``answered(_:of:into:)``.
        case ask(InvitationID, MCPeerID, type: String, Data?)
        /// Leaves all of the node's sessions with a peer.
        case leave(PeerID)
        /// Has the program look at the certificate of a peer, and calls ``checked(_:_:isGood:)``.
        case check(PeerID, SessionToken, MCPeerID)
        case tell(SessionToken, MCPeerID, MCSessionState)
        /// The peer is connected: what came from it meanwhile is for the program.
        case joined(PeerID)
        /// The pair is over: so are its transfers.
        case parted(Pair)
        /// Tells a peer where other members are, and with `isFirst` where we are.
        case introduce([Introduction.Member], to: PeerID, isFirst: Bool)
        /// Has the node dial a peer at addresses that came with an introduction; `nil` ends that.
        case reach(PeerID, [String]?)
        /// Calls ``listed(_:)`` if the node knows where the peer may be.
        case look(PeerID)
        /// Calls ``timePassed()`` after that time.
        case wake(after: Duration)
    }

    /// How long a lost connection may take to come back.
    static let lossGrace: Duration = .seconds(2)
    /// How long two that have agreed may take to connect: the one that was invited may know no way to the other.
    static let connectionTime: Duration = .seconds(20)
    /// How long an introduction counts.
    static let introductionTime: Duration = .seconds(30)
    /// How long a peer that was introduced may take to answer, before the program's own invitation takes the place of the introduction's.
    static let introductionGrace: Duration = .seconds(1)
    /// How long the peer with the lower id has the first word between two that were introduced.
    static let secondCall: Duration = .seconds(5)

    /// An invitation that this side has not answered.
    struct Asked {
        let invitation: InvitationID
        let peer: MCPeerID
        let envelope: Envelope
    }
}
