package import EarshotWire

/// The data that an unfinished transfer needs beyond its row to resume after an interruption or a restart.
package struct StoredTransfer: Sendable, Hashable, Identifiable {
    /// The source of an outgoing transfer's bytes.
    package enum Source: String, Sendable, Hashable, CaseIterable {
        /// The path in the row.
        case path
        /// The spool, into which a body was written first.
        case spool
        /// A body that is streamed and cannot be read again. If it is interrupted, the receiver is told to drop its content.
        case body
        /// A file that the caller holds open. The file can be read again until the caller leaves. The store has it as a body, because a
        /// restart loses it.
        case held
        /// None: the transfer is incoming.
        case none

        /// Whether the bytes are the caller's, and gone when it leaves.
        package var isOfCaller: Bool {
            switch self {
            case .body, .held: true
            case .path, .spool, .none: false
            }
        }
    }

    package let id: ResourceID
    package let source: Source
    /// A stamp that changes with the content of the source; empty if there is no source.
    package var stamp: String
    /// The digest that the receiver checks before it publishes.
    package let digest: ResourceEnd.DigestAlgorithm
    /// Whether an outgoing transfer may wait from the start for a peer that is away.
    package let isQueued: Bool
    /// Whether an incoming transfer was accepted.
    package var isTaken: Bool
    /// When a transfer that does not resume expires. After its end: when the peer need no longer be told.
    package var expiry: WallTime
    /// The most bytes per second of an outgoing transfer; `nil` for no limit.
    package let limit: UInt64?

    package init(
        id: ResourceID, source: Source, stamp: String = "", digest: ResourceEnd.DigestAlgorithm = .xxh3, isQueued: Bool = false,
        isTaken: Bool = false, expiry: WallTime, limit: UInt64? = nil
    ) {
        self.id = id
        self.source = source
        self.stamp = stamp
        self.digest = digest
        self.isQueued = isQueued
        self.isTaken = isTaken
        self.expiry = expiry
        self.limit = limit
    }

    /// Whether the transfer can resume from where it was interrupted.
    package var isResumable: Bool {
        switch self.source {
        case .path, .spool, .held, .none: true
        case .body: false
        }
    }
}
