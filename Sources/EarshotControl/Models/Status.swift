package import FoundationEssentials

extension ControlAPI {
    /// The answer of `GET /v1/status`: what the daemon is and how it does.
    package struct Status: Codable, Hashable, Sendable {
        /// This machine's display name.
        package let name: String
        /// This machine's peer id.
        package let peerID: String
        /// The daemon's version.
        package let version: String
        /// Such as `earshot`.
        package let serviceType: String
        /// Its preference: `required`, `optional` or `none`.
        package let encryption: String
        /// Where it listens, such as `10.0.0.7:47110`.
        package let addresses: [String]
        /// How it finds others.
        package let discovery: Discovery
        /// How much of everything there is.
        package let counts: Counts
        /// When this run began.
        @ReadableTime package var startedAt: Date?
        /// What is this machine's own business; older daemons do not say it.
        @ReadableValue package var local: Local?

        /// A value from its parts.
        package init(
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
    package struct Discovery: Codable, Hashable, Sendable {
        /// `avahi`, `embedded` or `none`.
        package let backend: String
        /// `starting`, `running`, `unavailable` or `off`.
        package let state: String
        /// Why it is unavailable.
        @ExplicitNull package var error: String?

        /// A value from its parts.
        package init(backend: String, state: String, error: String? = nil) {
            self.backend = backend
            self.state = state
            self._error = ExplicitNull(wrappedValue: error)
        }

        private enum CodingKeys: String, CodingKey {
            case backend, state, error
        }
    }

    /// How much of everything there is.
    package struct Counts: Codable, Hashable, Sendable {
        /// Known peers, near and away.
        package let peers: Int
        /// Peers with a connection now.
        package let connected: Int
        /// Sessions, attached or not.
        package let sessions: Int
        /// Invitations waiting for an answer here.
        package let invitations: Int
        /// Unread messages in the inbox.
        package let unread: Int
        /// Resources on their way, either direction.
        package let transfers: Int

        /// A value from its parts.
        package init(peers: Int, connected: Int, sessions: Int, invitations: Int, unread: Int, transfers: Int) {
            self.peers = peers
            self.connected = connected
            self.sessions = sessions
            self.invitations = invitations
            self.unread = unread
            self.transfers = transfers
        }

        private enum CodingKeys: String, CodingKey {
            case peers, connected, sessions, invitations, unread, transfers
        }
    }
}
