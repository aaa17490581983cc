public import EarshotWire

/// A file or a directory in transfer from one peer to another, or received.
public struct Resource: Sendable, Hashable, Codable, Identifiable {
    /// The kind of a resource.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        case file, directory
    }

    /// A user's decision about an offer.
    public enum Decision: String, Sendable, Hashable, Codable, CaseIterable {
        case accept, refuse
    }

    /// The digest of the whole that the receiver checks before it publishes.
    public enum Digest: String, Sendable, Hashable, Codable, CaseIterable {
        /// XXH3, 128 bits: fast, and detects faults of disks and programs.
        case xxh3
        /// SHA-256: for comparison with a published digest.
        case sha256
    }

    /// The state of a transfer.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case offered, transferring, paused, completed, cancelled, failed
    }

    /// Chosen by the sender's node; single use.
    public let id: ResourceID
    /// Whether the resource is received or sent.
    public let direction: Direction
    /// The peer at the other side.
    public let peerID: PeerID
    /// The peer's display name at the time: a label.
    public let peerName: String
    /// The group that it was sent to, with its name at the time; `nil` in a session of two.
    public let group: GroupLabel?
    /// The id that the sender gives all transfers of one resource to the members of a group; `nil` for others.
    public let shareID: ShareID?
    /// The sender's name for it: metadata, never a path until checked.
    public let name: String
    /// The directory, relative to that of received files, in which the sender wants it; `nil` for none. Only LocalSend devices send one.
    /// Checked: it has no `..` and no empty component.
    public let folder: String?
    /// The kind of the resource.
    public let kind: Kind
    /// The size in bytes. It changes if the source of an interrupted transfer has changed.
    public package(set) var size: UInt64
    /// Bytes written (incoming) or handed to the connection (outgoing).
    public package(set) var transferred: UInt64
    /// The rate over the last seconds; 0 while nothing moves.
    public package(set) var bytesPerSecond: UInt64
    /// The estimated remaining time at the recent pace; `nil` while nothing moves, or before there is an estimate.
    public package(set) var secondsLeft: UInt64?
    /// The state of the transfer.
    public package(set) var state: State
    /// The digest as `ALGORITHM:HEX` once known, such as `xxh3:99aa06d3014798d86001c324468d497f`.
    public package(set) var digest: String?
    /// The source of an outgoing resource, or the place of a published received one; `nil` while it is only in the spool.
    public package(set) var path: String?
    /// Why it failed or was cancelled.
    public package(set) var error: EarshotError.Code?
    /// The error as text.
    public package(set) var errorMessage: String?
    /// When it was offered.
    package let created: WallTime
    /// When it got its final state.
    package var completed: WallTime?
    /// Whether the content of an incoming, completed resource is still in the spool.
    public package(set) var inSpool: Bool
    /// `true` while an outgoing resource waits here and is not being offered to the receiver; otherwise `nil`. Its ``state`` is `offered`
    /// then.
    public package(set) var queued: Bool?

    /// Whether the resource should be in the directory of received files but is still in the spool. Its error says why.
    package var isLeft: Bool { self.direction == .incoming && self.state == .completed && self.inSpool && self.error != nil }

    package init(
        id: ResourceID, direction: Direction, peerID: PeerID, peerName: String, group: GroupLabel? = nil, shareID: ShareID? = nil,
        name: String, folder: String? = nil, kind: Kind, size: UInt64,
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
        self.folder = folder
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
        case name, folder, kind, size, transferred, bytesPerSecond, secondsLeft, state, digest, path, error, errorMessage
        case created = "createdAt"
        case completed = "completedAt"
        case inSpool, queued
    }
}

extension Resource.State {
    /// Whether the state is final.
    public var isFinal: Bool {
        switch self {
        case .offered, .transferring, .paused: false
        case .completed, .cancelled, .failed: true
        }
    }
}
