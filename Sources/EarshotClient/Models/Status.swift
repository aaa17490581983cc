public import FoundationEssentials

extension ControlAPI {
    /// The answer of `GET /v1/status`: what the daemon is and how it does.
    public struct Status: Codable, Hashable, Sendable {
        /// This machine's display name.
        public let name: String
        /// This machine's peer id.
        public let peerID: String
        /// The daemon's version.
        public let version: String
        /// Such as `earshot`.
        public let serviceType: String
        /// Its preference: `required`, `optional` or `none`.
        public let encryption: String
        /// Where it listens, such as `10.0.0.7:47110`.
        public let addresses: [String]
        /// How it finds others.
        public let discovery: Discovery
        /// How much of everything there is.
        public let counts: Counts
        /// When this run began.
        @ReadableTime public var startedAt: Date?
        /// What is this machine's own business; older daemons do not say it.
        @ReadableValue public var local: Local?

        /// A value from its parts.
        public init(
            name: String, peerID: String, version: String, serviceType: String, encryption: String, addresses: [String],
            discovery: Discovery, counts: Counts, startedAt: Date, local: Local? = nil
        ) {
            self.name = name
            self.peerID = peerID
            self.version = version
            self.serviceType = serviceType
            self.encryption = encryption
            self.addresses = addresses
            self.discovery = discovery
            self.counts = counts
            self._startedAt = ReadableTime(startedAt)
            self._local = ReadableValue(local)
        }

        private enum CodingKeys: String, CodingKey {
            case name
            case peerID = "peer_id"
            case version
            case serviceType = "service_type"
            case encryption, addresses, discovery, counts
            case startedAt = "started_at"
            case local
        }
    }

    /// Where discovery stands.
    public struct Discovery: Codable, Hashable, Sendable {
        /// `avahi`, `embedded` or `none`.
        public let backend: String
        /// `starting`, `running`, `unavailable` or `off`.
        public let state: String
        /// Why it is unavailable.
        @ExplicitNull public var error: String?

        /// A value from its parts.
        public init(backend: String, state: String, error: String? = nil) {
            self.backend = backend
            self.state = state
            self._error = ExplicitNull(wrappedValue: error)
        }

        private enum CodingKeys: String, CodingKey {
            case backend, state, error
        }
    }

    /// How much of everything there is.
    public struct Counts: Codable, Hashable, Sendable {
        /// Known peers, near and away.
        public let peers: Int
        /// Peers with a connection now.
        public let connected: Int
        /// Sessions, attached or not.
        public let sessions: Int
        /// Invitations waiting for an answer here.
        public let invitations: Int
        /// Unread messages in the inbox.
        public let unread: Int
        /// Resources on their way, either direction.
        public let transfers: Int
        /// Messages that wait for peers that are away; older daemons do not say it.
        public let outbox: Int?

        /// A value from its parts.
        public init(
            peers: Int, connected: Int, sessions: Int, invitations: Int, unread: Int, transfers: Int, outbox: Int? = nil
        ) {
            self.outbox = outbox
            self.peers = peers
            self.connected = connected
            self.sessions = sessions
            self.invitations = invitations
            self.unread = unread
            self.transfers = transfers
        }

        private enum CodingKeys: String, CodingKey {
            case peers, connected, sessions, invitations, unread, transfers, outbox
        }
    }
}
