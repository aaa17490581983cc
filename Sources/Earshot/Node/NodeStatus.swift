public import EarshotWire
public import FoundationEssentials

/// Where a node stands, for `GET /v1/status`.
public struct NodeStatus: Sendable {
    /// How many of each there are now.
    public struct Counts: Sendable, Hashable {
        /// Peers that are listed.
        public let peers: Int
        /// Sessions, attached or not.
        public let sessions: Int
        /// Proven connections.
        public let connections: Int
        /// Invitations of either direction that wait for an answer.
        public let pendingInvitations: Int
        /// Messages in the inbox that were not read.
        public let unreadMessages: Int
        /// Transfers of either direction that are not over.
        public let transfers: Int
    }

    /// This node's display name.
    public let name: DisplayName
    /// This node's peer id.
    public let id: PeerID
    /// What kind of peers it sees.
    public let serviceType: ServiceType
    /// What it wants of the transport.
    public let encryption: EncryptionPreference
    /// Where others can reach this node, such as `10.0.0.7:47110`.
    public let addresses: [String]
    /// The TCP port that it listens on.
    public let port: UInt16
    /// The one of the configuration, which was taken where it is another; 0 for any.
    public let wantedPort: UInt16
    /// Where identity, store and spool live; `nil` for an ephemeral node.
    public let stateDirectory: String?
    /// Bytes that the spool may hold.
    public let quota: UInt64
    /// The part of the file system that the spool leaves free, 0 to 1.
    public let reserve: Double
    /// How discovery does.
    public let discovery: DiscoveryStatus
    /// As advertised: the display name, unless it collided.
    public let instanceName: String?
    /// When this run began.
    public let startedAt: Date
    /// How many of each there are.
    public let counts: Counts
}

extension Node {
    /// What the node stands at.
    public func status() -> NodeStatus {
        let (discovery, instanceName) = self.core.discovery
        let counts = self.core.counts
        return NodeStatus(
            name: self.configuration.displayName, id: self.id, serviceType: self.configuration.serviceType,
            encryption: self.configuration.encryption, addresses: self.transport.ownAddresses(port: self.listeningPort),
            port: self.listeningPort, wantedPort: self.configuration.port, stateDirectory: self.configuration.stateDirectory,
            quota: self.configuration.quota, reserve: self.configuration.reserve, discovery: discovery, instanceName: instanceName,
            startedAt: self.startedAt,
            counts: NodeStatus.Counts(
                peers: counts.peers, sessions: counts.sessions, connections: counts.connections,
                pendingInvitations: counts.pendingInvitations, unreadMessages: self.unreadMessages,
                transfers: counts.transfers))
    }
}
