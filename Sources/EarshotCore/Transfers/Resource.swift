public import EarshotWire

/// A file or a directory on its way from one peer to another, or arrived.
public struct Resource: Sendable, Hashable, Codable, Identifiable {
    /// What is sent.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        case file, directory
    }

    /// What a person makes of an offer.
    public enum Decision: String, Sendable, Hashable, Codable, CaseIterable {
        case accept, refuse
    }

    /// Which digest of the whole the receiver checks before it publishes.
    public enum Digest: String, Sendable, Hashable, Codable, CaseIterable {
        /// XXH3, 128 bits: fast, against faults of disks and programs.
        case xxh3
        /// SHA-256: for comparing with a published one.
        case sha256
    }

    /// How the transfer stands.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case offered, transferring, paused, completed, cancelled, failed
    }

    /// Chosen by the sender's node; single use.
    public let id: ResourceID
    /// Received, or sent.
    public let direction: Direction
    /// The other side.
    public let peerID: PeerID
    /// The other side's display name at the time: a label.
    public let peerName: String
    /// The group that it was sent to, as it was called then; `nil` in a session of two.
    public let group: GroupLabel?
    /// What all transfers of one thing to the members of a group have in common, at its sender; `nil` for others.
    public let shareID: ShareID?
    /// As the sender gave it: metadata, never a path until checked.
    public let name: String
    /// What is sent.
    public let kind: Kind
    /// Bytes. Another one where the source of an interrupted transfer has changed meanwhile.
    public package(set) var size: UInt64
    /// Bytes written (incoming) or handed to the connection (outgoing).
    public package(set) var transferred: UInt64
    /// Over the last few seconds; 0 when nothing moves.
    public package(set) var bytesPerSecond: UInt64
    /// How long it will take at the pace of the last while; `nil` where nothing moves, or not for long enough to tell.
    public package(set) var secondsLeft: UInt64?
    /// How the transfer stands.
    public package(set) var state: State
    /// `ALGORITHM:HEX` once known, such as `xxh3:99aa06d3014798d86001c324468d497f`.
    public package(set) var digest: String?
    /// An outgoing resource's source, or where a received one was published; `nil` while only in the spool.
    public package(set) var path: String?
    /// Why it failed or was cancelled.
    public package(set) var error: EarshotError.Code?
    /// The same in words.
    public package(set) var errorMessage: String?
    /// When it was offered.
    package let created: WallTime
    /// When it got its final state.
    package var completed: WallTime?
    /// Whether the content of an incoming, completed resource is still in the spool.
    public package(set) var inSpool: Bool
    /// `true` while an outgoing resource waits here and is not being offered to the receiver; else `nil`. Its ``state`` is `offered` then.
    public package(set) var queued: Bool?

    /// Whether it was to be put into the directory of received files, and is not there: such a one says why it is still in the spool.
    package var isLeft: Bool { self.direction == .incoming && self.state == .completed && self.inSpool && self.error != nil }

    package init(
        id: ResourceID, direction: Direction, peerID: PeerID, peerName: String, group: GroupLabel? = nil, shareID: ShareID? = nil,
        name: String, kind: Kind, size: UInt64,
        transferred: UInt64 = 0, bytesPerSecond: UInt64 = 0, state: State, digest: String? = nil, path: String? = nil,
        error: EarshotError.Code? = nil, errorMessage: String? = nil, created: WallTime, completed: WallTime? = nil, inSpool: Bool = false
    ) {
        self.id = id
        self.direction = direction
        self.peerID = peerID
        self.peerName = peerName
        self.group = group
        self.shareID = shareID
        self.name = name
        self.kind = kind
        self.size = size
        self.transferred = transferred
        self.bytesPerSecond = bytesPerSecond
        self.state = state
        self.digest = digest
        self.path = path
        self.error = error
        self.errorMessage = errorMessage
        self.created = created
        self.completed = completed
        self.inSpool = inSpool
    }

    private enum CodingKeys: String, CodingKey {
        case id, direction
        case peerID = "peerId"
        case peerName, group
        case shareID = "shareId"
        case name, kind, size, transferred, bytesPerSecond, secondsLeft, state, digest, path, error, errorMessage
        case created = "createdAt"
        case completed = "completedAt"
        case inSpool, queued
    }
}

extension Resource.State {
    /// Whether nothing will move any more.
    public var isFinal: Bool {
        switch self {
        case .offered, .transferring, .paused: false
        case .completed, .cancelled, .failed: true
        }
    }
}
