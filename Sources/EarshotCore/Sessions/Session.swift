public import EarshotWire

/// Peers that have agreed to talk. Belongs to their keys, not to a connection.
public struct Session: Sendable, Hashable, Codable, Identifiable {
    /// The other side of a session.
    public struct Member: Sendable, Hashable, Codable {
        /// Who it is.
        public let peerID: PeerID
        /// Its display name: a label.
        public let name: String
        /// Whether it can be talked to now.
        public let state: MemberState
        /// Of its connection; `nil` without one.
        public let protection: Protection?

        private enum CodingKeys: String, CodingKey {
            case peerID = "peerId"
            case name, state, protection
        }
    }

    /// Chosen by the side that accepted.
    public let id: SessionID
    /// The members but for ourselves.
    public let members: [Member]
    /// When it was agreed, by this machine's clock.
    package let created: WallTime

    private enum CodingKeys: String, CodingKey {
        case id, members
        case created = "createdAt"
    }
}
