extension ControlAPI {
    /// The part of the status that concerns only this machine: for its administrator, and for `earshot doctor`.
    public struct Local: Codable, Hashable, Sendable {
        /// The advertised name: the display name, unless that collided; `nil` if nothing is advertised.
        @ExplicitNull public var instanceName: String?
        /// The addresses at which other machines advertise this machine's peer id, such as `10.0.0.9:47110`; `nil` from an older daemon.
        public let identityCopies: [String]?
        /// The TCP port on which the daemon listens.
        public let port: Int
        /// The port in the settings; 0 for any port.
        public let wantedPort: Int
        /// The directory of the identity, messages and received files.
        public let stateDirectory: String
        /// The most bytes that received files may occupy.
        public let quota: UInt64
        /// The share of the file system that received files leave free, 0 to 1.
        public let reserve: Double
        /// The limit on the rate of all outgoing files, in bytes per second; `nil` for no limit.
        public let sendLimit: UInt64?
        /// The limit on the rate of all incoming files, in bytes per second; `nil` for no limit.
        public let receiveLimit: UInt64?

        /// Creates a value from its parts.
        public init(
            instanceName: String?, port: Int, wantedPort: Int, stateDirectory: String, quota: UInt64, reserve: Double,
            identityCopies: [String]? = nil, sendLimit: UInt64? = nil, receiveLimit: UInt64? = nil
        ) {
            self._instanceName = ExplicitNull(wrappedValue: instanceName)
            self.identityCopies = identityCopies
            self.port = port
            self.wantedPort = wantedPort
            self.stateDirectory = stateDirectory
            self.quota = quota
            self.reserve = reserve
            self.sendLimit = sendLimit
            self.receiveLimit = receiveLimit
        }

        private enum CodingKeys: String, CodingKey {
            case instanceName = "instance_name"
            case identityCopies = "identity_copies"
            case port
            case wantedPort = "wanted_port"
            case stateDirectory = "state_directory"
            case quota, reserve
            case sendLimit = "send_limit"
            case receiveLimit = "receive_limit"
        }
    }
}
