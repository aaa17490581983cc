public import EarshotWire
public import FoundationEssentials

/// The state of a node, for `GET /v1/status`.
public struct NodeStatus: Sendable, Hashable, Codable {
    /// Current counts.
    public struct Counts: Sendable, Hashable, Codable {
        /// Listed peers.
        public let peers: Int
        /// Sessions, attached or not.
        public let sessions: Int
        /// Proven connections.
        public let connections: Int
        /// Pending invitations of either direction.
        public let pendingInvitations: Int
        /// Unread messages in the inbox.
        public let unreadMessages: Int
        /// Unfinished transfers of either direction.
        public let transfers: Int
        /// Messages that wait on disk for absent peers.
        public let waitingMessages: Int
    }

    /// The state of LocalSend.
    public struct LocalSend: Sendable, Hashable, Codable {
        /// The TCP port at which devices reach this node; `nil` while it does not listen.
        public let port: UInt16?
        /// The configured port, which differs from ``port`` if it was in use; 0 for any.
        public let wantedPort: UInt16
        /// This node's fingerprint, as devices show it: the SHA-256 of its certificate, 64 hex digits.
        public let fingerprint: String?
        /// Why the node does not listen.
        public let error: String?
    }

    /// This node's display name.
    public let name: DisplayName
    /// This node's peer id.
    public let id: PeerID
    /// The service type of the peers that this node sees.
    public let serviceType: ServiceType
    /// The configured encryption.
    public let encryption: EncryptionPreference
    /// Addresses at which others can reach this node, such as `10.0.0.7:47110`.
    public let addresses: [String]
    /// The TCP port that this node listens on.
    public let port: UInt16
    /// The state of LocalSend; `nil` if it is off.
    public let localSend: LocalSend?
    /// The configured port, which differs from ``port`` if it was in use; 0 for any.
    public let wantedPort: UInt16
    /// The directory of identity, store and spool; `nil` for an ephemeral node.
    public let stateDirectory: String?
    /// The maximum size of the spool, in bytes.
    public let quota: UInt64
    /// The part of the file system that the spool leaves free, 0 to 1.
    public let reserve: Double
    /// The limit on the bandwidth of outgoing transfers, in bytes per second; `nil` for none.
    public let sendLimit: UInt64?
    /// The limit on the bandwidth of incoming transfers, in bytes per second; `nil` for none.
    public let receiveLimit: UInt64?
    /// The state of discovery.
    public let discovery: DiscoveryStatus
    /// The advertised instance name: the display name, unless it collided.
    public let instanceName: String?
    /// Addresses at which other machines advertise this node's peer id, such as `10.0.0.9:47110`. Their disk is a copy of this machine's,
    /// or they imitate it.
    public let identityCopies: [String]
    /// The start of this run, in milliseconds.
    public let startedAt: Date
    /// The current counts.
    public let counts: Counts
}

extension NodeStatus {
    /// Decodes a status.
    /// - Throws: `DecodingError` if a name, an id or the reserve is outside its limits, or if another field is invalid.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.name = try fields.decode(DisplayName.self, forKey: .name)
        self.id = try fields.decode(PeerID.self, forKey: .id)
        self.serviceType = try fields.decode(ServiceType.self, forKey: .serviceType)
        self.encryption = try fields.decode(EncryptionPreference.self, forKey: .encryption)
        self.addresses = try fields.decode([String].self, forKey: .addresses)
        self.port = try fields.decode(UInt16.self, forKey: .port)
        self.localSend = try fields.decodeIfPresent(LocalSend.self, forKey: .localSend)
        self.wantedPort = try fields.decode(UInt16.self, forKey: .wantedPort)
        self.stateDirectory = try fields.decodeIfPresent(String.self, forKey: .stateDirectory)
        self.quota = try fields.decode(UInt64.self, forKey: .quota)
        self.reserve = try fields.decode(Double.self, forKey: .reserve)
        self.sendLimit = try fields.decodeIfPresent(UInt64.self, forKey: .sendLimit)
        self.receiveLimit = try fields.decodeIfPresent(UInt64.self, forKey: .receiveLimit)
        self.discovery = try fields.decode(DiscoveryStatus.self, forKey: .discovery)
        self.instanceName = try fields.decodeIfPresent(String.self, forKey: .instanceName)
        self.identityCopies = try fields.decodeIfPresent([String].self, forKey: .identityCopies) ?? []
        self.startedAt = try fields.decode(Date.self, forKey: .startedAt)
        self.counts = try fields.decode(Counts.self, forKey: .counts)
        guard (0...1).contains(self.reserve) else { throw fields.fault(.reserve, "the reserve is 0 to 1") }
    }
}

extension Node {
    /// Returns the state of the node.
    public func status() -> NodeStatus {
        let (discovery, instanceName) = self.core.discovery
        let counts = self.core.counts
        return NodeStatus(
            name: self.configuration.displayName, id: self.id, serviceType: self.configuration.serviceType,
            encryption: self.configuration.encryption, addresses: self.transport.ownAddresses(port: self.listeningPort),
            port: self.listeningPort, localSend: self.localSend, wantedPort: self.configuration.port,
            stateDirectory: self.configuration.stateDirectory,
            quota: self.configuration.quota, reserve: self.configuration.reserve, sendLimit: self.configuration.sendLimit,
            receiveLimit: self.configuration.receiveLimit, discovery: discovery, instanceName: instanceName,
            identityCopies: self.core.identityCopyAddresses.map(\.description), startedAt: self.startedAt,
            counts: NodeStatus.Counts(
                peers: counts.peers, sessions: counts.sessions, connections: counts.connections,
                pendingInvitations: counts.pendingInvitations, unreadMessages: self.unreadMessages,
                transfers: counts.transfers, waitingMessages: self.core.waitingMessages))
    }

    private var localSend: NodeStatus.LocalSend? {
        guard self.configuration.localSend.isEnabled, let devices = self.devices else { return nil }
        return NodeStatus.LocalSend(
            port: self.devicePort, wantedPort: self.configuration.localSend.port, fingerprint: devices.fingerprint,
            error: self.deviceError ?? (self.devicePort == nil ? nil : devices.announcementFailure))
    }
}
