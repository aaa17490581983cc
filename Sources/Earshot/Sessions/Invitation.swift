public import EarshotWire
public import FoundationEssentials

/// Which way something went, seen from this machine.
public enum Direction: String, Sendable, Hashable, Codable, CaseIterable {
    case incoming
    case outgoing
}

/// One peer's request to another to join a session.
public struct Invitation: Sendable, Hashable, Identifiable {
    /// How it stands.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case pending, accepted, declined
        case timedOut = "timed_out"
        case cancelled, failed
    }

    /// A person's or a policy's answer.
    public enum Decision: String, Sendable, Hashable, Codable, CaseIterable {
        case accept, reject, block
    }

    public let id: InvitationID
    public let direction: Direction
    public let peerID: PeerID
    public let peerName: String
    /// Opaque bytes of the inviter, at most 8 KiB.
    public let context: [UInt8]
    public internal(set) var state: State
    /// Why it failed, in words, for `failed`; may be set for other final states.
    public internal(set) var error: EarshotError.Code?
    public internal(set) var errorMessage: String?
    public let createdAt: Date
    public let expiresAt: Date
    public internal(set) var sessionID: SessionID?
}

/// Peers that have agreed to talk. Belongs to their keys, not to a connection.
public struct Session: Sendable, Hashable, Identifiable {
    /// The other side of a session.
    public struct Member: Sendable, Hashable {
        public let peerID: PeerID
        public let name: String
        public let state: MemberState
        public let protection: Protection?
    }

    public let id: SessionID
    /// The members but for ourselves.
    public let members: [Member]
    public let createdAt: Date
}
