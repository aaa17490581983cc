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
        case chunk(offset: UInt64, ByteBuffer, weight: Int)
        case end(ResourceEnd.DigestAlgorithm, [UInt8])
        /// The receiver has published it.
        case done
    }

    var row: Resource
    /// Ends when the transfer does.
    var signals: AsyncStream<Signal>.Continuation?
    var meter = RateMeter()
    var lastProgress: ContinuousClock.Instant?
    var expiry: Scheduled<Void>?
    var waiters: [CheckedContinuation<Resource, Never>] = []
}

extension Resource.State {
    /// Whether nothing will move any more.
    var isFinal: Bool {
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
}

/// Where the bytes of an outgoing resource come from; read once, in order.
protocol ResourceSource: Sendable {
    /// At most `count` of the bytes at `offset`, which is where the last read ended.
    func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer
    /// All was read: the digest of the whole, once the source has been found unchanged.
    func finish() async throws(EarshotError) -> [UInt8]
}

extension SourceFile: ResourceSource {}
