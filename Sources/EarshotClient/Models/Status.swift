public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// The answer of `GET /v1/status`: the daemon's identity and state.
    public struct Status: Codable, Hashable, Sendable {
        /// This machine's display name.
        public let name: String
        /// This machine's peer id.
        public let peerID: PeerID
        /// The daemon's version.
        public let version: String
        /// The service type, such as `earshot`.
        public let serviceType: String
        /// The encryption preference: `required`, `optional` or `none`.
        public let encryption: String
        /// The addresses on which the daemon listens, such as `10.0.0.7:47110`.
        public let addresses: [String]
        /// The state of discovery.
        public let discovery: Discovery
        /// The numbers of peers, sessions, messages and so on.
        public let counts: Counts
        /// When this run of the daemon began.
        @ReadableTime public var startedAt: Date?
        /// The state of LocalSend; absent from older daemons.
        @ReadableValue public var localSend: LocalSend?
        /// The part that concerns only this machine; absent from older daemons.
        @ReadableValue public var local: Local?

        /// Creates a value from its parts.
        public init(
            name: String, peerID: PeerID, version: String, serviceType: String, encryption: String, addresses: [String],
            discovery: Discovery, counts: Counts, startedAt: Date, local: Local? = nil, localSend: LocalSend? = nil
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
            self._localSend = ReadableValue(localSend)
            self._local = ReadableValue(local)
        }

        private enum CodingKeys: String, CodingKey {
            case name
            case peerID = "peer_id"
            case version
            case serviceType = "service_type"
            case encryption, addresses, discovery, counts
            case startedAt = "started_at"
            case localSend = "localsend"
            case local
        }
    }

    /// The state of LocalSend, with which this machine exchanges files and texts with LocalSend devices.
    public struct LocalSend: Codable, Hashable, Sendable {
        /// Whether the settings enable it.
        public let enabled: Bool
        /// The TCP port on which the daemon listens for devices; `nil` while it does not listen.
        public let port: Int?
        /// The port in the settings; 0 for any port.
        public let wantedPort: Int?
        /// This machine's fingerprint, as other LocalSend programs show it: the SHA-256 of its certificate, 64 hex digits.
        public let fingerprint: String?
        /// Why LocalSend does not work, or works only in part.
        public let error: String?

        /// Creates a value from its parts.
        public init(enabled: Bool, port: Int? = nil, wantedPort: Int? = nil, fingerprint: String? = nil, error: String? = nil) {
            self.enabled = enabled
            self.port = port
            self.wantedPort = wantedPort
            self.fingerprint = fingerprint
            self.error = error
        }

        private enum CodingKeys: String, CodingKey {
            case enabled, port
            case wantedPort = "wanted_port"
            case fingerprint, error
        }
    }

    /// The state of discovery.
    public struct Discovery: Codable, Hashable, Sendable {
        /// The backend: `avahi`, `embedded` or `none`.
        public let backend: String
        /// The state: `starting`, `running`, `unavailable` or `off`.
        public let state: String
        /// Why discovery is unavailable.
        @ExplicitNull public var error: String?

        /// Creates a value from its parts.
        public init(backend: String, state: String, error: String? = nil) {
            self.backend = backend
            self.state = state
            self._error = ExplicitNull(wrappedValue: error)
        }

        private enum CodingKeys: String, CodingKey {
            case backend, state, error
        }
    }

    /// The numbers of peers, sessions, messages and so on.
    public struct Counts: Codable, Hashable, Sendable {
        /// All peers, nearby or away.
        public let peers: Int
        /// Connected peers.
        public let connected: Int
        /// Sessions, attached or not.
        public let sessions: Int
        /// Pending invitations to this machine.
        public let invitations: Int
        /// Unread messages in the inbox.
        public let unread: Int
        /// Transfers in progress, in either direction.
        public let transfers: Int
        /// Queued messages; absent from older daemons.
        public let outbox: Int?

        /// Creates a value from its parts.
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
