public import FoundationEssentials

extension ControlAPI {
    /// A file or a directory on its way from one peer to another, or arrived.
    public struct Resource: Codable, Hashable, Sendable {
        /// What is sent.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            case file
            case directory
        }

        /// What the receiver checks the whole by before it publishes it.
        public enum Digest: String, Hashable, Sendable, CaseIterable {
            case xxh3
            case sha256
        }

        /// How a transfer stands; the last three are final.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case offered
            case transferring
            case paused
            case completed
            case cancelled
            case failed
        }

        /// A UUID in lower case.
        public let id: String
        /// `incoming` is towards this machine.
        public let direction: Tolerant<Direction>
        /// The other side.
        public let peerID: String
        /// A label, untrusted.
        public let peerName: String
        /// The group that it was sent to; `nil` in a session of two.
        @ExplicitNull public var group: GroupLabel?
        /// At the sender of something to a group: what its transfers to the members have in common.
        public let shareID: String?
        /// As the sender gave it: untrusted, never a path until checked.
        public let name: String
        /// What is sent.
        public let kind: Tolerant<Kind>
        /// Bytes.
        public let size: UInt64
        /// Bytes so far.
        public let transferred: UInt64
        /// Over the last few seconds; 0 when nothing moves.
        public let bytesPerSecond: UInt64
        /// Whole seconds at the pace of the last while, where that can be told.
        @ReadableValue public var secondsLeft: UInt64?
        /// How the transfer stands.
        public let state: Tolerant<State>
        /// `ALGORITHM:HEX` once known.
        @ExplicitNull public var digest: String?
        /// The source of an outgoing one, or where a received one was published.
        public let path: String?
        /// Why it failed.
        @ReadableValue public var error: Failure?
        /// When it was offered.
        @ReadableTime public var createdAt: Date?
        /// When it ended.
        @ReadableValue public var completedAt: Date?
        /// Whether the content of an incoming, completed one can still be fetched.
        public let inSpool: Bool?
        /// `true` while an outgoing one waits here and is not being offered to the receiver; its state is `offered` then.
        public let queued: Bool?

        /// A value from its parts.
        public init(
            id: String, direction: Tolerant<Direction>, peerID: String, peerName: String, name: String, kind: Tolerant<Kind>,
            size: UInt64, transferred: UInt64, bytesPerSecond: UInt64, secondsLeft: UInt64? = nil, state: Tolerant<State>,
            digest: String? = nil, path: String? = nil, error: Failure? = nil, createdAt: Date, completedAt: Date? = nil,
            inSpool: Bool? = nil, queued: Bool? = nil, group: GroupLabel? = nil, shareID: String? = nil
        ) {
            self.id = id
            self.direction = direction
            self.peerID = peerID
            self.peerName = peerName
            self._group = ExplicitNull(wrappedValue: group)
            self.shareID = shareID
            self.name = name
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
            case name, kind, size, transferred
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
        /// Both directions, or one a recipient.
        @ReadableElements public var resources: [Resource]

        /// A value from its parts.
        public init(resources: [Resource]) {
            self._resources = ReadableElements(resources)
        }

        private enum CodingKeys: String, CodingKey {
            case resources
        }
    }

    /// The body of `POST /v1/resources/{id}/response`.
    public struct ResourceResponse: Codable, Hashable, Sendable {
        /// What a person makes of an offer.
        public enum Decision: String, Hashable, Sendable, CaseIterable {
            case accept
            case refuse
            /// The same as `refuse`: an invitation's word for it.
            case reject
        }

        /// What a person makes of it.
        public let decision: Tolerant<Decision>

        /// A value from its parts.
        public init(decision: Tolerant<Decision>) {
            self.decision = decision
        }

        private enum CodingKeys: String, CodingKey {
            case decision
        }
    }

    /// To whom the bytes of a request go.
    public enum ResourceRecipient: Hashable, Sendable {
        /// Any form of naming a peer.
        case peer(String)
        /// All other members of a group, in any form of naming it.
        case group(String)

        package var query: (String, String) {
            switch self {
            case .peer(let peer): ("to", peer)
            case .group(let group): ("group", group)
            }
        }
    }

    /// The JSON body of `POST /v1/resources`: a file that the daemon opens itself.
    public struct ResourceRequest: Codable, Hashable, Sendable {
        /// Any form of naming a peer; `nil` with a group.
        public let to: [String]?
        /// For all other members of this group, in any form of naming it.
        public let group: String?
        /// Absolute.
        public let path: String
        /// The name that the receivers see; the last component of the path unless given.
        public let name: String?
        /// The `st_dev` and `st_ino` of stat(2) that the path has for the caller. The daemon refuses the path with `invalid-source` where it
        /// leads to another file there, as in another mount namespace.
        public let device: UInt64?
        /// See `device`.
        public let inode: UInt64?
        /// Whether it may wait for a peer that is away.
        public let queue: Bool?
        /// What the receiver checks; XXH3 unless given.
        public let digest: Tolerant<Resource.Digest>?

        /// A value from its parts.
        public init(
            to: [String]? = nil, group: String? = nil, path: String, name: String? = nil, device: UInt64? = nil, inode: UInt64? = nil,
            queue: Bool? = nil, digest: Tolerant<Resource.Digest>? = nil
        ) {
            self.to = to
            self.group = group
            self.path = path
            self.name = name
            self.device = device
            self.inode = inode
            self.queue = queue
            self.digest = digest
        }

        private enum CodingKeys: String, CodingKey {
            case to, group, path, name, device, inode, queue, digest
        }
    }
}
