package import EarshotWire

/// What an unfinished transfer needs beyond its row to go on after an interruption, also one of this process.
package struct StoredTransfer: Sendable, Hashable, Identifiable {
    /// Where the bytes of an outgoing one come from.
    package enum Source: String, Sendable, Hashable, CaseIterable {
        /// The path in the row.
        case path
        /// The spool, into which a body was written first.
        case spool
        /// A body that passes by and cannot be read again; what it brings elsewhere is told to be dropped.
        case body
        /// It is an incoming one.
        case none
    }

    package let id: ResourceID
    package let source: Source
    /// What tells the present content of the source from another one; empty where there is none.
    package var stamp: String
    /// Checked by the receiver before it publishes.
    package let digest: ResourceEnd.DigestAlgorithm
    /// Whether an outgoing one waits for a peer that is away from the beginning.
    package let isQueued: Bool
    /// Whether an incoming one was accepted.
    package var isTaken: Bool
    /// When it is given up if it does not go on; of one that is over: when the other side need not be told any more.
    package var expiry: WallTime

    package init(
        id: ResourceID, source: Source, stamp: String = "", digest: ResourceEnd.DigestAlgorithm = .xxh3, isQueued: Bool = false,
        isTaken: Bool = false, expiry: WallTime
    ) {
        self.id = id
        self.source = source
        self.stamp = stamp
        self.digest = digest
        self.isQueued = isQueued
        self.isTaken = isTaken
        self.expiry = expiry
    }

    /// Whether it can go on from where it was interrupted.
    package var isResumable: Bool {
        switch self.source {
        case .path, .spool, .none: true
        case .body: false
        }
    }
}
