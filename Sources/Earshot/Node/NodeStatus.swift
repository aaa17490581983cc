public import EarshotWire
public import FoundationEssentials

/// Where a node stands, for `GET /v1/status`.
public struct NodeStatus: Sendable, Hashable, Codable {
    /// How many of each there are now.
    public struct Counts: Sendable, Hashable, Codable {
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
        /// Messages that wait on disk for peers that are away.
        public let waitingMessages: Int
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
    /// Where other machines advertise this node's peer id, such as `10.0.0.9:47110`: their disk is a copy of this machine's, or they
    /// imitate it.
    public let identityCopies: [String]
    /// When this run began, to the millisecond.
    public let startedAt: Date
    /// How many of each there are.
    public let counts: Counts
}

extension NodeStatus {
    /// Decodes a status.
    /// - Throws: `DecodingError` where a name, an id or the reserve is outside of its limits, or anything else is not what it is to be.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.name = try fields.decode(DisplayName.self, forKey: .name)
        self.id = try fields.decode(PeerID.self, forKey: .id)
        self.serviceType = try fields.decode(ServiceType.self, forKey: .serviceType)
        self.encryption = try fields.decode(EncryptionPreference.self, forKey: .encryption)
        self.addresses = try fields.decode([String].self, forKey: .addresses)
        self.port = try fields.decode(UInt16.self, forKey: .port)
        self.wantedPort = try fields.decode(UInt16.self, forKey: .wantedPort)
        self.stateDirectory = try fields.decodeIfPresent(String.self, forKey: .stateDirectory)
        self.quota = try fields.decode(UInt64.self, forKey: .quota)
        self.reserve = try fields.decode(Double.self, forKey: .reserve)
        self.discovery = try fields.decode(DiscoveryStatus.self, forKey: .discovery)
        self.instanceName = try fields.decodeIfPresent(String.self, forKey: .instanceName)
        self.identityCopies = try fields.decodeIfPresent([String].self, forKey: .identityCopies) ?? []
        self.startedAt = try fields.decode(Date.self, forKey: .startedAt)
        self.counts = try fields.decode(Counts.self, forKey: .counts)
        guard (0...1).contains(self.reserve) else { throw fields.fault(.reserve, "the reserve is 0 to 1") }
    }
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
            identityCopies: self.core.identityCopyAddresses.map(\.description), startedAt: self.startedAt,
            counts: NodeStatus.Counts(
                peers: counts.peers, sessions: counts.sessions, connections: counts.connections,
                pendingInvitations: counts.pendingInvitations, unreadMessages: self.unreadMessages,
                transfers: counts.transfers, waitingMessages: self.core.waitingMessages))
    }
}
