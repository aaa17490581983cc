import EarshotWire
import FoundationEssentials
import NIOCore

/// A resource with what hangs on it while it moves.
struct Transfer {
    /// What its job hears.
    enum Signal: Sendable {
        /// Both sides have named the session: the offer can go out.
        case attached
        /// Send from `offset` up to `limit`.
        case accepted(offset: UInt64, limit: UInt64)
        /// The receiver holds so many bytes from an earlier connection, of this digest.
        case have(offset: UInt64, digest: [UInt8])
        /// The sender goes on from there.
        case from(offset: UInt64)
        case chunk(offset: UInt64, ByteBuffer, weight: Int)
        case end(ResourceEnd.DigestAlgorithm, [UInt8])
        /// The receiver has published it.
        case done
    }

    /// What may take only so long.
    enum Limit: Sendable, Hashable {
        /// That the peer of an outgoing one is within reach.
        case reach
        /// The peer's answer to our offer.
        case answer
        /// A person's answer here.
        case decision
        /// That more bytes move than these.
        case movement(beyond: UInt64)
        /// The peer's word that it has everything.
        case done
    }

    var row: Resource
    /// Has its job, and ends when the transfer does; `nil` for an offer that waits for a person.
    var signals: AsyncStream<Signal>.Continuation?
    /// What its timer is for.
    var limit: Limit?
    /// Whether an incoming one was accepted, by a person or by the policy.
    var isTaken = false
    /// Whole and kept, on its way into the directory of received files: too late to cancel.
    var isPublishing = false
    var meter = RateMeter()
    var lastProgress: ContinuousClock.Instant?
    var expiry: Scheduled<Void>?
    var waiters: [CheckedContinuation<Resource, Never>] = []

    /// The row as it is at the moment, for whoever asks: without events the rate would stay at what it was.
    func shown(at now: ContinuousClock.Instant) -> Resource {
        guard !self.row.state.isFinal else { return self.row }
        var row = self.row
        row.bytesPerSecond = self.meter.bytesPerSecond(at: now)
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

/// Bytes a second with a short memory: of the last full second, or of what there is of the first.
struct RateMeter {
    private var windowStart: ContinuousClock.Instant?
    private var windowBytes: UInt64 = 0
    private(set) var bytesPerSecond: UInt64 = 0
    private var hasFullWindow = false

    mutating func add(_ bytes: UInt64, at now: ContinuousClock.Instant) {
        guard let start = self.windowStart else {
            self.windowStart = now
            self.windowBytes = bytes
            return
        }
        self.windowBytes += bytes
        let elapsed = now - start
        let isFull = elapsed >= .seconds(1)
        guard isFull || (!self.hasFullWindow && elapsed > .milliseconds(50)) else { return }
        self.bytesPerSecond = UInt64(Double(self.windowBytes) / (elapsed / .seconds(1)))
        guard isFull else { return }
        self.hasFullWindow = true
        self.windowStart = now
        self.windowBytes = 0
    }

    /// The rate as it looks `now`: it falls while nothing moves.
    func bytesPerSecond(at now: ContinuousClock.Instant) -> UInt64 {
        guard let start = self.windowStart, now - start >= .seconds(2) else { return self.bytesPerSecond }
        return UInt64(Double(self.windowBytes) / ((now - start) / .seconds(1)))
    }
}
