/// The state of discovery, as `status` shows it.
public struct DiscoveryStatus: Sendable, Hashable, Codable {
    /// The mechanism in use.
    public enum Backend: String, Sendable, Hashable, Codable, CaseIterable {
        case avahi, embedded, none
    }

    /// The state of the mechanism.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case starting
        /// Advertising and browsing as asked.
        case running
        /// Not working now, for the reason in `error`. The backend keeps trying.
        case unavailable
        case off
    }

    /// The mechanism in use.
    public let backend: Backend
    /// The state of the mechanism.
    public let state: State
    /// The reason for `unavailable`, one sentence.
    public let error: String?

    /// Creates a status from its parts.
    public init(backend: Backend, state: State, error: String? = nil) {
        self.backend = backend
        self.state = state
        self.error = error
    }
}

/// A `key=value` pair of a TXT record (RFC 6763 section 6).
public struct TXTPair: Sendable, Hashable {
    /// Printable ASCII without `=`, compared without regard to case.
    public let key: String
    /// Opaque bytes. Key, `=` and value have at most 255 bytes together.
    public let value: [UInt8]

    /// Creates a pair from its parts.
    public init(key: String, value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

/// A service instance as seen on one interface and protocol. The same peer may be seen as several instances. All fields are untrusted.
public struct Sighting: Sendable, Hashable {
    /// The identity of a sighting. A later sighting with the same key replaces it, and a loss with that key removes it.
    public struct Key: Sendable, Hashable {
        /// The DNS-SD instance (RFC 6763 section 4.1.1).
        public let instanceName: String
        /// The kernel's index of the interface.
        public let interfaceIndex: Int32
        /// Whether the sighting came over IPv6 multicast.
        public let overIPv6: Bool

        /// Creates a key from its parts.
        public init(instanceName: String, interfaceIndex: Int32, overIPv6: Bool) {
            self.instanceName = instanceName
            self.interfaceIndex = interfaceIndex
            self.overIPv6 = overIPv6
        }

        /// Compares instance names as DNS does: as bytes, without regard to the case of ASCII letters (RFC 6762 section 16).
        public static func == (one: Self, other: Self) -> Bool {
            one.interfaceIndex == other.interfaceIndex && one.overIPv6 == other.overIPv6
                && one.instanceName.utf8.elementsEqual(other.instanceName.utf8) { Self.folded($0) == Self.folded($1) }
        }

        /// Hashes the values that `==` compares.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(self.interfaceIndex)
            hasher.combine(self.overIPv6)
            for byte in self.instanceName.utf8 { hasher.combine(Self.folded(byte)) }
        }

        private static func folded(_ byte: UInt8) -> UInt8 {
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
        }
    }

    /// The identity of this sighting.
    public let key: Key
    /// The name of the interface, such as `eth0`: the zone of a link-local address.
    public let interfaceName: String
    /// Whether the record came in on the loopback interface. Only then may a loopback address be dialled.
    public let isLoopback: Bool
    /// The numeric addresses without zone, such as `10.77.0.2` or `fe80::1`.
    public let addresses: [String]
    /// The TCP port, 1 to 65535.
    public let port: UInt16
    /// The TXT record's pairs, in order.
    public let txt: [TXTPair]

    /// Creates a sighting from its parts.
    public init(key: Key, interfaceName: String, isLoopback: Bool, addresses: [String], port: UInt16, txt: [TXTPair]) {
        self.key = key
        self.interfaceName = interfaceName
        self.isLoopback = isLoopback
        self.addresses = addresses
        self.port = port
        self.txt = txt
    }
}

/// An event reported by a discovery backend.
public enum DiscoveryEvent: Sendable, Hashable {
    /// An instance was seen, or its addresses, port or TXT record changed.
    case found(DiscoveryStatus.Backend, Sighting)
    case lost(DiscoveryStatus.Backend, Sighting.Key)
    /// The backend lost its state, because it restarted or another backend took over. Sightings that are not reported again are gone.
    case reset(DiscoveryStatus.Backend)
    case status(DiscoveryStatus)
    /// This machine is advertised under this instance name.
    case advertised(instanceName: String)
}
