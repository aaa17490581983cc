public import EarshotWire
package import FoundationEssentials

/// What becomes of a received file when its name is taken.
public enum NameConflictPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// It becomes `name (2).ext`, and so on.
    case rename
    /// It replaces the file that is there; never a directory, and of a link the link itself. What an earlier run could not put there is
    /// renamed instead: what is there may be newer.
    case overwrite
    /// It is refused.
    case skip
}

extension Node {
    /// What a node is told at its start.
    public struct Configuration: Sendable {
        /// The label that others see.
        public var displayName: DisplayName
        /// Only peers of the same type see each other.
        public var serviceType: ServiceType
        /// Where identity, store and spool live; made with mode 0700 where it is missing. `nil` for an ephemeral node, which keeps nothing:
        /// see ``ephemeral(displayName:serviceType:)``.
        public var stateDirectory: String?
        /// Who the node is, where the program keeps that itself; `nil` for the one of ``certificate``, else of the state directory, else a new one.
        public var identity: Identity?
        /// The TCP port to listen on; 0 for any.
        public var port: UInt16 = 47110
        /// Whether a taken port is an error; else any free one is used.
        public var portIsFixed = false
        /// What this node wants of the transport.
        public var encryption: EncryptionPreference = .required
        /// A person's own certificate, with those that lead to its authority, and its key: PEM files. Both or neither; without them the identity is
        /// made once and kept in the state directory.
        public var certificate: String?
        /// See ``certificate``.
        public var privateKey: String?
        /// PEM files of the authorities whose peers are trusted: those that show a chain of at most four certificates, in order, up to one of them.
        public var authorities: [String] = []
        /// Whether others can find this node.
        public var advertise = true
        /// Whether this node looks for others.
        public var browse = true
        /// The user's pairs in the advertisement; see `DiscoveryInfo` for the limits.
        public var discoveryInfo: [String: String] = [:]
        /// Peers that are reached without discovery.
        public var configuredPeers: [ConfiguredPeer] = []
        /// For peers whose trust is unknown.
        public var fromUnknown: InvitationPolicy = .ask
        /// For trusted peers.
        public var fromTrusted: InvitationPolicy = .accept
        /// Whether invitations of peers that are not trusted are declined without being shown.
        public var pairedOnly = false
        /// For invitations to groups: `accept` those of trusted peers, while the others' wait for a person.
        public var groupInvitations: InvitationPolicy = .ask
        /// For resources from members of a group, in it: `ask` has those of members wait that are neither trusted nor in a session.
        public var groupFiles: GroupFilePolicy = .accept
        /// How long an invitation is open where the inviter does not say.
        public var invitationTimeout: Duration = .seconds(30)
        /// Strangers at one IPv4 address or IPv6 /64 whose invitations may wait here at once, of 32 in all; the next hears that this node is busy.
        /// Programs on one machine have one address. What it is when the node is made counts.
        public var invitationsPerAddress = EarshotLimits.pendingInvitationsPerAddress
        /// How many invitations a peer that is not trusted may send at once, 1 to 10,000; after those, one a second. The next hears that this node is
        /// busy. All at one address may send four times as many. What it is when the node is made counts.
        public var invitationBurst = EarshotLimits.askingBurst
        /// Messages kept in the inbox.
        public var inboxLimit = 10_000
        /// Bytes kept in the inbox.
        public var inboxSize: UInt64 = 256 * 1024 * 1024
        /// How long read messages are kept.
        public var inboxAge: Duration = .seconds(30 * 86_400)
        /// For resources from session members.
        public var acceptResources: OfferPolicy = .session
        /// Where received files are put, an absolute path; `nil` leaves them in the spool until they are fetched.
        public var receiveDirectory: String?
        /// For received files whose name is taken there.
        public var onNameConflict: NameConflictPolicy = .rename
        /// How long a message waits in the outbox, at most `EarshotLimits.outboxAgeLimit`.
        public var outboxAge: Duration = .seconds(7 * 86_400)
        /// Whether senders are told when their messages were read.
        public var receipts = true
        /// Bytes that the spool may hold.
        public var quota: UInt64 = 20 * 1024 * 1024 * 1024
        /// The part of the file system that the spool leaves free, 0 to 1.
        public var reserve = 0.05
        /// The largest resource that is accepted, in bytes.
        public var maximumResourceSize: UInt64?
        /// The time by the clock on the wall; tests put one in that they set.
        package var now: (@Sendable () -> Date)?
        /// What comes due by it; tests put one in whose time they move.
        package var timers: Timers?
        /// What finds the addresses of configured peers; tests put one in that answers as they like.
        package var lookup: HostLookup?

        /// A configuration with the defaults of `earshotd.conf(5)`.
        public init(displayName: DisplayName, serviceType: ServiceType, stateDirectory: String) {
            self.init(displayName, serviceType, stateDirectory)
        }

        /// A configuration of a node that ends with its program and leaves nothing behind.
        ///
        /// - Its key is new, unless the program brings an ``identity``; sessions, trust and what is queued are kept in memory.
        /// - A message is acknowledged when the program has taken it out of the inbox: when ``Node/messages(of:from:in:)`` gives it, or a page
        ///   of the inbox holds it. An event alone does not count. What is in the inbox when the program ends was never acknowledged. A message is
        ///   dropped when it is read.
        /// - Every invitation waits for the program: ``Node/respond(to:_:always:)``. Other policies may be set.
        /// - It listens at any port.
        /// - Received content lies in a directory of its own below `TMPDIR`, else `/var/tmp`, until it is fetched, and goes with the node. What a
        ///   program that was killed has left there goes when the next such node of the same user begins.
        public static func ephemeral(displayName: DisplayName, serviceType: ServiceType) -> Self {
            var configuration = Self(displayName, serviceType, nil)
            configuration.port = 0
            configuration.fromTrusted = .ask
            return configuration
        }

        /// Whether a session is one of two running programs. A peer that has started again is asked for anew, and gets nothing that was sent before.
        package var sessionsEndWithPrograms = false

        /// Whether the program holds the lock of the state directory (``StateLock``), for longer than a node of it is there.
        package var isStateLocked = false

        private init(_ displayName: DisplayName, _ serviceType: ServiceType, _ stateDirectory: String?) {
            self.displayName = displayName
            self.serviceType = serviceType
            self.stateDirectory = stateDirectory
        }
    }
}

extension Node.Configuration {
    /// What the inbox may hold.
    var inboxLimits: InboxLimits {
        InboxLimits(count: self.inboxLimit, bytes: self.inboxSize, keepsRead: self.stateDirectory != nil)
    }

    /// Those of the settings that the rules about peers go by.
    var policySettings: PolicyEngine.Settings {
        PolicyEngine.Settings(
            encryption: self.encryption, fromUnknown: self.fromUnknown, fromTrusted: self.fromTrusted, pairedOnly: self.pairedOnly,
            acceptResources: self.acceptResources)
    }
}
