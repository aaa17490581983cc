public import EarshotWire

/// A session of peers that have agreed to talk. It belongs to their keys, not to a connection.
public struct Session: Sendable, Hashable, Codable, Identifiable {
    /// The peer at the other side of a session.
    public struct Member: Sendable, Hashable, Codable {
        /// The id of the peer.
        public let peerID: PeerID
        /// Its display name: a label.
        public let name: String
        /// Whether the peer is reachable in the session now.
        public let state: MemberState
        /// The protection of its connection; `nil` without a connection.
        public let protection: Protection?

        private enum CodingKeys: String, CodingKey {
            case peerID = "peerId"
            case name, state, protection
        }
    }

    /// Chosen by the side that accepted.
    public let id: SessionID
    /// The members except this machine.
    public let members: [Member]
    /// When it was agreed, by this machine's clock.
    package let created: WallTime

    private enum CodingKeys: String, CodingKey {
        case id, members
        case created = "createdAt"
    }
}
