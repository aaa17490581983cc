extension ControlAPI {
    /// What of the daemon's status is this machine's own business: for its administrator, and for `earshot doctor`.
    public struct Local: Codable, Hashable, Sendable {
        /// As advertised: the display name, unless it collided; `nil` where nothing is advertised.
        @ExplicitNull public var instanceName: String?
        /// Where other machines advertise this machine's peer id, such as `10.0.0.9:47110`; `nil` where the daemon is older and does not say.
        public let identityCopies: [String]?
        /// The TCP port that is listened on.
        public let port: Int
        /// The one of the settings; 0 for any.
        public let wantedPort: Int
        /// Where identity, messages and received files are.
        public let stateDirectory: String
        /// Bytes that received files may take.
        public let quota: UInt64
        /// The part of the file system that they leave free, 0 to 1.
        public let reserve: Double

        /// A value from its parts.
        public init(
            instanceName: String?, port: Int, wantedPort: Int, stateDirectory: String, quota: UInt64, reserve: Double,
            identityCopies: [String]? = nil
        ) {
            self._instanceName = ExplicitNull(wrappedValue: instanceName)
            self.identityCopies = identityCopies
            self.port = port
            self.wantedPort = wantedPort
            self.stateDirectory = stateDirectory
            self.quota = quota
            self.reserve = reserve
        }

        private enum CodingKeys: String, CodingKey {
            case instanceName = "instance_name"
            case identityCopies = "identity_copies"
            case port
            case wantedPort = "wanted_port"
            case stateDirectory = "state_directory"
            case quota, reserve
        }
    }
}
