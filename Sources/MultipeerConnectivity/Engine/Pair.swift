import Earshot
import Foundation

/// A remote peer in one of our sessions, or on its way into it.
struct Pair {
    /// How far it is.
    enum Stage: Equatable {
        /// We have invited it; there may be no answer yet.
        case inviting(InvitationID?)
        /// Both have agreed.
        case agreed
        /// Its connection stands, and the program looks at the certificate.
        case checking
        case connected
    }

    let session: WeakReference<MCSession>
    let token: SessionToken
    /// Whether the program has asked for it, or agreed to it: then it hears what comes of that.
    let isWanted: Bool
    /// Where it can be reached, by its own word.
    var addresses: [String]?
    /// By its proven name, once there is one.
    var peer: MCPeerID
    var stage: Stage
    /// The pair's session as the node has it.
    var sessionID: SessionID?
    /// When both had agreed, which the program has heard as that it connects.
    var agreedAt: ContinuousClock.Instant?
    /// What has come before the program has agreed to the certificate.
    var held: [@Sendable (isolated PeerEngine) async -> Void] = []
    /// The first parts of data that is longer than a message.
    var parts: IncomingParts?
    /// Since when its connection is gone, while it is.
    var lostAt: ContinuousClock.Instant?

    /// Whether both sides want it: it has a place in the session.
    var hasAgreed: Bool {
        if case .inviting = self.stage { false } else { true }
    }
}

/// A peer that members of a session have introduced to us, or the program.
struct Introduced {
    let session: WeakReference<MCSession>
    let token: SessionToken
    let peer: MCPeerID
    let until: ContinuousClock.Instant
}
