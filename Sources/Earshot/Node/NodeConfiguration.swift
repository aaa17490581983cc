public import EarshotWire
package import FoundationEssentials

/// The action if the name of a received file is in use.
public enum NameConflictPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// The file is named `name (2).ext`, and so on.
    case rename
    /// The file replaces the existing file or symbolic link, but never a directory. A file that an earlier run could not move is renamed
    /// instead, because the existing file may be newer.
    case overwrite
    /// The file is refused.
    case skip
}

extension Node {
    /// The settings of a node.
    public struct Configuration: Sendable {
        /// The name that other peers see.
        public var displayName: DisplayName
        /// The service type. Only peers of the same type see each other.
        public var serviceType: ServiceType
        /// The directory of identity, store and spool. A missing directory is created with mode 0700. `nil` for an ephemeral node, which
        /// keeps nothing: see ``ephemeral(displayName:serviceType:)``.
        public var stateDirectory: String?
        /// The identity, if the program keeps it itself. If `nil`, the node uses that of ``certificate``, else that of the state
        /// directory, else a new one.
        public var identity: Identity?
        /// The TCP port to listen on; 0 for any free port.
        public var port: UInt16 = 47110
        /// Whether it is an error if the port is in use. Otherwise a free port is used instead.
        public var portIsFixed = false
        /// The encryption of connections.
        public var encryption: EncryptionPreference = .required
        /// The path of a PEM file with a certificate and its intermediates. Set both this and ``privateKey``, or neither: without them, a
        /// key is generated on first start and kept in the state directory.
        public var certificate: String?
        /// The path of a PEM file with the private key of ``certificate``.
        public var privateKey: String?
        /// Paths of PEM files of certificate authorities. A peer is trusted if it presents a chain of at most four certificates, in order,
        /// up to one of them.
        public var authorities: [String] = []
        /// Whether other peers can discover this node.
        public var advertise = true
        /// Whether this node looks for other peers.
        public var browse = true
        /// The user's pairs of the advertisement; see `DiscoveryInfo` for the limits.
        public var discoveryInfo: [String: String] = [:]
        /// Peers to connect to without discovery.
        public var configuredPeers: [ConfiguredPeer] = []
        /// The policy for invitations from peers whose trust is unknown.
        public var fromUnknown: InvitationPolicy = .ask
        /// The policy for invitations from trusted peers.
        public var fromTrusted: InvitationPolicy = .accept
        /// Whether invitations from untrusted peers are declined without being shown.
        public var pairedOnly = false
        /// The policy for invitations to groups. `accept` applies to invitations from trusted peers; others still wait for a user.
        public var groupInvitations: InvitationPolicy = .ask
        /// The policy for resources that are sent to a group. With `ask`, a user decides about members that are neither trusted nor in a
        /// session.
        public var groupFiles: GroupFilePolicy = .accept
        /// How long an invitation from this node waits for an answer, unless its caller says.
        public var invitationTimeout: Duration = .seconds(30)
        /// Invitations from strangers at one IPv4 address or IPv6 /64 that may wait here at once, of 32 in all. Further ones are told that
        /// this node is busy. Programs on one machine share an address. Read only when the node is made.
        public var invitationsPerAddress = EarshotLimits.pendingInvitationsPerAddress
        /// Invitations that an untrusted peer may send at once, 1 to 10,000; after those, one a second. Further ones are told that this
        /// node is busy. All peers at one address may send four times as many. Read only when the node is made.
        public var invitationBurst = EarshotLimits.askingBurst
        /// The maximum number of unread messages, and of read messages. Beyond it, unread messages are refused and read ones deleted.
        public var inboxLimit = 10_000
        /// The maximum size of the unread messages, and of the read messages, in bytes.
        public var inboxSize: UInt64 = 256 * 1024 * 1024
        /// The age at which read messages are deleted.
        public var inboxAge: Duration = .seconds(30 * 86_400)
        /// The policy for resources from peers in a session.
        public var acceptResources: OfferPolicy = .session
        /// The directory for received files, an absolute path. If `nil`, files stay in the spool until they are fetched.
        public var receiveDirectory: String?
        /// The action if the name of a received file is in use in that directory.
        public var onNameConflict: NameConflictPolicy = .rename
        /// How long a queued message waits for its recipient, at most `EarshotLimits.outboxAgeLimit`.
        public var outboxAge: Duration = .seconds(7 * 86_400)
        /// Whether senders are told that their messages were read.
        public var receipts = true
        /// The maximum size of the spool, in bytes.
        public var quota: UInt64 = 20 * 1024 * 1024 * 1024
        /// The part of the file system to leave free, 0 to 1.
        public var reserve = 0.05
        /// The largest resource to accept, in bytes; `nil` for no limit besides ``quota`` and ``reserve``.
        public var maximumResourceSize: UInt64?
        /// The bytes per second that all outgoing transfers of resources may move together, from 1 KiB to 1 TiB; `nil` for no limit. The
        /// moving transfers share the limit evenly. Messages and streams are not limited.
        public var sendLimit: UInt64?
        /// The same limit for incoming transfers.
        public var receiveLimit: UInt64?
        /// The settings for LocalSend.
        public var localSend = LocalSend()
        /// The wall clock, which tests replace.
        package var now: (@Sendable () -> Date)?
        /// The timers, which tests replace.
        package var timers: Timers?
        /// The lookup of configured peers' addresses, which tests replace.
        package var lookup: HostLookup?

        /// Makes a configuration with the defaults of `earshotd.conf(5)`, except that ``invitationTimeout`` is 30 s.
        public init(displayName: DisplayName, serviceType: ServiceType, stateDirectory: String) {
            self.init(displayName, serviceType, stateDirectory)
        }

        /// Makes the configuration of a node that ends with its program and keeps nothing.
        ///
        /// - The node has a new key, unless the program sets an ``identity``. Sessions, trust and queued messages are kept in memory.
        /// - A message is acknowledged when the program takes it out of the inbox: when ``Node/messages(of:from:in:)`` or a page of the
        ///   inbox returns it. An event alone does not acknowledge a message. Messages that are in the inbox when the program ends were
        ///   never acknowledged. A message is deleted when it is read.
        /// - Every invitation waits for the program: ``Node/respond(to:_:always:)``. The program may set other policies.
        /// - The node listens on any free port.
        /// - Received content is kept in a new directory in `TMPDIR`, else `/var/tmp`, until it is fetched, and is deleted with the node.
        ///   The content of a program that was killed is deleted when the next ephemeral node of the same user starts.
        public static func ephemeral(displayName: DisplayName, serviceType: ServiceType) -> Self {
            var configuration = Self(displayName, serviceType, nil)
            configuration.port = 0
            configuration.fromTrusted = .ask
            return configuration
        }

        /// Whether a session ends when one of the two programs ends. A restarted peer has to be invited again, and receives nothing that
        /// was sent before.
        package var sessionsEndWithPrograms = false

        /// Whether the program itself holds the lock of the state directory (``StateLock``).
        package var isStateLocked = false

        private init(_ displayName: DisplayName, _ serviceType: ServiceType, _ stateDirectory: String?) {
            self.displayName = displayName
            self.serviceType = serviceType
            self.stateDirectory = stateDirectory
        }
    }
}

extension Node.Configuration {
    /// The settings for LocalSend, the protocol of many phones.
    public struct LocalSend: Sendable, Hashable {
        /// Whether this node announces itself to LocalSend devices, listens for them and lists them.
        public var isEnabled = false
        /// The TCP and UDP port. If the TCP port is in use, any free one is used and announced. Read only when the node is made.
        public var port: UInt16 = 53317
        /// The PIN that senders that are not trusted have to give, 6 to 64 characters; `nil` for none.
        public var pin: String?
        /// How long an offer waits for a user: 5 s to a day.
        public var timeout: Duration = EarshotLimits.deviceOfferTime

        /// Makes the settings with their defaults.
        public init() {}
    }

    /// The limits of the inbox.
    var inboxLimits: InboxLimits {
        InboxLimits(count: self.inboxLimit, bytes: self.inboxSize, keepsRead: self.stateDirectory != nil)
    }

    /// The settings that the core needs for its decisions.
    var core: CoreSettings {
        var core = CoreSettings()
        core.policy.encryption = self.encryption
        core.policy.fromUnknown = self.fromUnknown
        core.policy.fromTrusted = self.fromTrusted
        core.policy.pairedOnly = self.pairedOnly
        core.policy.acceptResources = self.acceptResources
        core.invitationTimeout = self.invitationTimeout
        core.configuredPeers = self.configuredPeers
        core.outboxAge = self.outboxAge
        core.receipts = self.receipts
        core.maximumResourceSize = self.maximumResourceSize
        core.sendLimit = self.sendLimit.map(Self.rate)
        core.receiveLimit = self.receiveLimit.map(Self.rate)
        core.groupInvitations = self.groupInvitations
        core.groupFiles = self.groupFiles
        core.name = self.displayName
        core.invitationsPerAddress = self.invitationsPerAddress
        core.invitationBurst = self.invitationBurst
        core.sessionsEndWithPrograms = self.sessionsEndWithPrograms
        core.putsInPlace = self.receiveDirectory != nil
        core.devices.isOn = self.localSend.isEnabled
        core.devices.pin = self.localSend.pin
        core.devices.offerTime = min(
            max(self.localSend.timeout, EarshotLimits.deviceOfferTimes.lowerBound), EarshotLimits.deviceOfferTimes.upperBound)
        return core
    }

    /// Returns the nearest rate within the limits.
    private static func rate(_ limit: UInt64) -> UInt64 {
        min(max(limit, WireLimits.transferRate.lowerBound), WireLimits.transferRate.upperBound)
    }
}
