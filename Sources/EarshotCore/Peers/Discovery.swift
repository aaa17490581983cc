/// Where discovery stands, as `status` shows it.
public struct DiscoveryStatus: Sendable, Hashable, Codable {
    /// The mechanism in use.
    public enum Backend: String, Sendable, Hashable, Codable, CaseIterable {
        case avahi, embedded, none
    }

    /// How it is doing.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case starting
        /// Advertising and browsing as asked.
        case running
        /// Not working now; the error says why; it goes on trying.
        case unavailable
        case off
    }

    /// The mechanism in use.
    public let backend: Backend
    /// How it is doing.
    public let state: State
    /// One sentence, for `unavailable`.
    public let error: String?

    /// A status from its parts.
    public init(backend: Backend, state: State, error: String? = nil) {
        self.backend = backend
        self.state = state
        self.error = error
    }
}

/// One `key=value` of a TXT record (RFC 6763 section 6).
public struct TXTPair: Sendable, Hashable {
    /// Printable ASCII without `=`; its case does not count.
    public let key: String
    /// Opaque bytes, with the key and the `=` at most 255.
    public let value: [UInt8]

    /// A pair from its parts.
    public init(key: String, value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

/// One instance as seen on one interface and protocol; a peer may be seen as several. All of it is untrusted.
public struct Sighting: Sendable, Hashable {
    /// What a later sighting replaces and a loss takes away.
    public struct Key: Sendable, Hashable {
        /// The DNS-SD instance (RFC 6763 section 4.1.1).
        public let instanceName: String
        /// The kernel's number of the interface.
        public let interfaceIndex: Int32
        /// True for a sighting over IPv6 multicast.
        public let overIPv6: Bool

        /// A key from its parts.
        public init(instanceName: String, interfaceIndex: Int32, overIPv6: Bool) {
            self.instanceName = instanceName
            self.interfaceIndex = interfaceIndex
            self.overIPv6 = overIPv6
        }

        /// Two are of one instance where DNS says so: its names are bytes, and the case of ASCII letters does not count (RFC 6762 section 16).
        public static func == (one: Self, other: Self) -> Bool {
            one.interfaceIndex == other.interfaceIndex && one.overIPv6 == other.overIPv6
                && one.instanceName.utf8.elementsEqual(other.instanceName.utf8) { Self.folded($0) == Self.folded($1) }
        }

        /// By what the comparison goes by.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(self.interfaceIndex)
            hasher.combine(self.overIPv6)
            for byte in self.instanceName.utf8 { hasher.combine(Self.folded(byte)) }
        }

        private static func folded(_ byte: UInt8) -> UInt8 {
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
        }
    }

    /// What this sighting is of.
    public let key: Key
    /// Such as `eth0`; the zone of a link-local address.
    public let interfaceName: String
    /// Whether the record came in on the loopback interface: only then may a loopback address be dialled.
    public let isLoopback: Bool
    /// Numeric, without zone, such as `10.77.0.2` or `fe80::1`.
    public let addresses: [String]
    /// The TCP port, 1 to 65535.
    public let port: UInt16
    /// The TXT record's pairs, in order.
    public let txt: [TXTPair]

    /// A sighting from its parts.
    public init(key: Key, interfaceName: String, isLoopback: Bool, addresses: [String], port: UInt16, txt: [TXTPair]) {
        self.key = key
        self.interfaceName = interfaceName
        self.isLoopback = isLoopback
        self.addresses = addresses
        self.port = port
        self.txt = txt
    }
}

/// What a discovery backend reports.
public enum DiscoveryEvent: Sendable, Hashable {
    /// Seen, or seen with other addresses, port or TXT.
    case found(DiscoveryStatus.Backend, Sighting)
    case lost(DiscoveryStatus.Backend, Sighting.Key)
    /// The backend forgot everything (it restarted, or another took over): what is not seen again is gone.
    case reset(DiscoveryStatus.Backend)
    case status(DiscoveryStatus)
    /// The advertisement is out under this instance name.
    case advertised(instanceName: String)
}
