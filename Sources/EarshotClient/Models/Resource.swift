public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A file or directory that is sent from one peer to another, or has been.
    public struct Resource: Codable, Hashable, Sendable {
        /// The kind of a resource.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            case file
            case directory
        }

        /// The digest of the whole content, which the receiver checks before it publishes the content.
        public enum Digest: String, Hashable, Sendable, CaseIterable {
            case xxh3
            case sha256
        }

        /// The state of a transfer; the last three are final.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case offered
            case transferring
            case paused
            case completed
            case cancelled
            case failed
        }

        /// The transfer's id: a UUID in lower case.
        public let id: ResourceID
        /// The direction; `incoming` transfers flow to this machine.
        public let direction: Tolerant<Direction>
        /// The other peer's id.
        public let peerID: PeerID
        /// The other peer's display name, untrusted.
        public let peerName: String
        /// The group of the transfer; `nil` in a session of two.
        @ExplicitNull public var group: GroupLabel?
        /// At the sender of a file to a group: the id that its transfers to all members share.
        public let shareID: ShareID?
        /// The name that the sender gave, untrusted; must be checked before it is used as a path.
        public let name: String
        /// The directory that the sender wants the file in, relative and with `/` between its components; untrusted, and must be checked
        /// before it is used as a path. `nil` for a file without one.
        public let folder: String?
        /// The kind of resource.
        public let kind: Tolerant<Kind>
        /// The size in bytes.
        public let size: UInt64
        /// The number of bytes so far.
        public let transferred: UInt64
        /// The rate over the last few seconds; 0 when nothing moves.
        public let bytesPerSecond: UInt64
        /// The estimated time left in whole seconds, at the recent rate, if it is known.
        @ReadableValue public var secondsLeft: UInt64?
        /// The state of the transfer.
        public let state: Tolerant<State>
        /// The digest, as `ALGORITHM:HEX`, once it is known.
        @ExplicitNull public var digest: String?
        /// The source of an outgoing file, or the path at which a received file was published.
        public let path: String?
        /// Why the transfer failed.
        @ReadableValue public var error: Failure?
        /// When the resource was offered.
        @ReadableTime public var createdAt: Date?
        /// When the transfer ended.
        @ReadableValue public var completedAt: Date?
        /// Whether the content of a completed incoming transfer can still be fetched.
        public let inSpool: Bool?
        /// `true` while an outgoing resource is queued here and not offered to the receiver; its state is then `offered`.
        public let queued: Bool?

        /// Creates a value from its parts.
        public init(
            id: ResourceID, direction: Tolerant<Direction>, peerID: PeerID, peerName: String, name: String, kind: Tolerant<Kind>,
            size: UInt64, transferred: UInt64, bytesPerSecond: UInt64, secondsLeft: UInt64? = nil, state: Tolerant<State>,
            digest: String? = nil, path: String? = nil, error: Failure? = nil, createdAt: Date, completedAt: Date? = nil,
            inSpool: Bool? = nil, queued: Bool? = nil, group: GroupLabel? = nil, shareID: ShareID? = nil,
            folder: String? = nil
        ) {
            self.id = id
            self.direction = direction
            self.peerID = peerID
            self.peerName = peerName
            self._group = ExplicitNull(wrappedValue: group)
            self.shareID = shareID
            self.name = name
            self.folder = folder
            self.kind = kind
            self.size = size
            self.transferred = transferred
            self.bytesPerSecond = bytesPerSecond
            self._secondsLeft = ReadableValue(secondsLeft)
            self.state = state
            self._digest = ExplicitNull(wrappedValue: digest)
            self.path = path
            self._error = ReadableValue(error)
            self._createdAt = ReadableTime(createdAt)
            self._completedAt = ReadableValue(completedAt)
            self.inSpool = inSpool
            self.queued = queued
        }

        private enum CodingKeys: String, CodingKey {
            case id, direction
            case peerID = "peer_id"
            case peerName = "peer_name"
            case group
            case shareID = "share_id"
            case name, folder, kind, size, transferred
            case bytesPerSecond = "bytes_per_second"
            case secondsLeft = "seconds_left"
            case state, digest, path, error
            case createdAt = "created_at"
            case completedAt = "completed_at"
            case inSpool = "in_spool"
            case queued
        }
    }

    /// The answer of `GET` and `POST /v1/resources`.
    public struct ResourceList: Codable, Hashable, Sendable {
        /// The transfers of both directions, or one for each recipient of a request.
        @ReadableElements public var resources: [Resource]

        /// Creates a value from its parts.
        public init(resources: [Resource]) {
            self._resources = ReadableElements(resources)
        }

        private enum CodingKeys: String, CodingKey {
            case resources
        }
    }

    /// The body of `POST /v1/resources/{id}/response`.
    public struct ResourceResponse: Codable, Hashable, Sendable {
        /// An answer to an offer.
        public enum Decision: String, Hashable, Sendable, CaseIterable {
            case accept
            case refuse
            /// A synonym of `refuse`, as in an answer to an invitation.
            case reject
        }

        /// The answer.
        public let decision: Tolerant<Decision>

        /// Creates a value from its parts.
        public init(decision: Tolerant<Decision>) {
            self.decision = decision
        }

        private enum CodingKeys: String, CodingKey {
            case decision
        }
    }

    /// The recipients of a resource whose bytes are the body of the request.
    public enum ResourceRecipient: Hashable, Sendable {
        /// A peer, in any form of naming a peer.
        case peer(String)
        /// All other members of a group, in any form of naming a group.
        case group(String)

        /// The peer with this id.
        public static func peer(_ id: PeerID) -> Self { .peer(id.description) }

        /// All other members of the group with this id.
        public static func group(_ id: GroupID) -> Self { .group(id.description) }

        package var query: (String, String) {
            switch self {
            case .peer(let peer): ("to", peer)
            case .group(let group): ("group", group)
            }
        }
    }

    /// The JSON body of `POST /v1/resources`: a file that the daemon opens itself.
    public struct ResourceRequest: Codable, Hashable, Sendable {
        /// The recipients, in any form of naming a peer; `nil` with a group.
        public let to: [String]?
        /// The group whose other members are the recipients, in any form of naming a group.
        public let group: String?
        /// The absolute path.
        public let path: String
        /// The name that the receivers see; by default the last component of the path.
        public let name: String?
        /// The `st_dev` of stat(2) that the path has for the caller. The daemon refuses the path with `invalid-source` if it leads to
        /// another file there, as in another mount namespace.
        public let device: UInt64?
        /// The `st_ino` of stat(2); see `device`.
        public let inode: UInt64?
        /// Whether the daemon queues the file for a peer that is away.
        public let queue: Bool?
        /// The digest that the receiver checks; by default XXH3.
        public let digest: Tolerant<Resource.Digest>?
        /// The most bytes per second of each transfer, 1 KiB to 1 TiB; `nil` for no limit.
        public let limit: UInt64?
        /// The PIN of a LocalSend device that asks for one.
        public let pin: String?

        /// Creates a value from its parts.
        public init(
            to: [any PeerReference]? = nil, group: (any GroupReference)? = nil, path: String, name: String? = nil, device: UInt64? = nil,
            inode: UInt64? = nil,
            queue: Bool? = nil, digest: Tolerant<Resource.Digest>? = nil, limit: UInt64? = nil, pin: String? = nil
        ) {
            self.to = to?.map(\.description)
            self.group = group?.description
            self.path = path
            self.name = name
            self.device = device
            self.inode = inode
            self.queue = queue
            self.digest = digest
            self.limit = limit
            self.pin = pin
        }

        private enum CodingKeys: String, CodingKey {
            case to, group, path, name, device, inode, queue, digest, limit, pin
        }
    }
}
