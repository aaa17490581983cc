import EarshotWire
import FoundationEssentials
import NIOCore

/// A resource with what hangs on it while it moves, and while it waits to move on.
///
/// What moves it is a job: one of an upload runs while its peer is attached, one of a download from the offer on. When the connection is
/// lost the transfer has no signals any more, which its job finds out after its next await; the next job begins once that one has
/// returned.
struct Transfer: Sendable {
    /// What its job hears.
    enum Signal: Sendable {
        /// Send from `offset` up to `limit`.
        case accepted(offset: UInt64, limit: UInt64, Charge?)
        /// The receiver holds so many bytes from an earlier connection, of this digest.
        case have(offset: UInt64, digest: [UInt8])
        /// The sender goes on from there.
        case from(offset: UInt64)
        case chunk(offset: UInt64, ByteBuffer, weight: Int)
        case end(ResourceEnd.DigestAlgorithm, [UInt8])
        /// The list of entries of this directory may come.
        case turn
        /// The receiver has published it.
        case done
        /// The data connection that both sides have agreed upon; `nil` where there can be none.
        case data(DataConnection?)
    }

    /// What may take only so long.
    enum Limit: Sendable, Hashable {
        /// That the peer of an outgoing one is within reach.
        case reach
        /// The peer's answer to our offer.
        case answer
        /// A person's answer here.
        case decision
        /// That both sides have read what the receiver holds from before.
        case comparison
        /// That more bytes move than these.
        case movement(beyond: UInt64)
        /// The peer's word that it has everything.
        case done
        /// That the peer is back.
        case absence
    }

    /// An offer that came again before the last job had returned.
    struct PendingOffer {
        let offer: ResourceOffer
        let connection: Connection
    }

    var row: Resource
    /// What it needs to go on after an interruption; `nil` once it is over and its peer need not be told.
    var stored: StoredTransfer?
    /// Has its job, and ends when the transfer does or is interrupted; `nil` where it waits for a person or its peer.
    var signals: AsyncStream<Signal>.Continuation?
    /// Whether its job has not returned.
    var hasJob = false
    var pendingOffer: PendingOffer?
    /// Of an outgoing one, until its job takes it; one that can be resumed is opened anew for each further job.
    var content: (any OutgoingContent)?
    /// Whether the other side may know of an outgoing one.
    var isOffered = false
    /// What its timer is for.
    var limit: Limit?
    /// The other side has ended it: it need not be told, now or when it is back.
    var isEndedByPeer = false
    /// All of an incoming one has arrived: its job goes on to its end without the connection.
    var isSettling = false
    /// Whole and kept, on its way into the directory of received files: too late to cancel.
    var isPublishing = false
    var meter = RateMeter()
    var pace = PaceMeter()
    /// How far it is, while its bytes move without the node.
    var moved: (@Sendable () -> UInt64)?
    /// When that is looked at next.
    var progressTimer: Scheduled<Void>?
    var lastProgress: MonotonicInstant?
    /// When the present job began to move bytes, until that has been recorded.
    var unrecordedSince: MonotonicInstant?
    var expiry: Scheduled<Void>?
    /// Of one whose body a caller brings: told how it ended.
    var ended: OneShot<Resource>?

    init(row: Resource, stored: StoredTransfer? = nil) {
        self.row = row
        self.stored = stored
    }

    /// Whether an incoming one was accepted, by a person or by the policy.
    var isTaken: Bool { self.stored?.isTaken ?? false }

    /// Whether its end is to be told to the other side when that returns.
    var isUntold: Bool { self.row.state.isFinal && self.stored != nil }

    /// The row as it is at the moment, for a caller that asks: without events the rate would stay at what it was.
    func shown(at now: MonotonicInstant) -> Resource {
        guard !self.row.state.isFinal else { return self.row }
        var row = self.row
        row.bytesPerSecond = self.signals == nil ? 0 : self.meter.bytesPerSecond(at: now)
        return row
    }
}

extension Resource.State {
    /// Whether nothing will move any more.
    package var isFinal: Bool {
        switch self {
        case .offered, .transferring, .paused: false
        case .completed, .cancelled, .failed: true
        }
    }
}
