internal import Earshot
internal import Synchronization

/// The readers of the event stream, which are counted, and dropped if they stall.
///
/// A slow reader costs the daemon no more than a fast one: a connection and a position in the log. But a reader that has stopped reading
/// would hold both for ever. The daemon therefore drops a reader when one write to it has been in progress for a minute ("Events" in
/// earshot-api(7)). This class has no timer: ``ControlServer`` calls ``dropStalled()`` every few seconds.
final class EventReaders: Sendable {
    /// The highest number of readers. It is below the server's limit on connections, so that the daemon still answers other calls.
    static let limit = 1_024
    /// The time that a write may take before its reader is dropped.
    static let stallTime: Duration = .seconds(60)
    /// The time between two checks for stalled readers.
    static let sweepInterval: Duration = .seconds(5)
    /// The time between two comments to readers of server-sent events: proxies and clients take silence for a dead connection.
    static let heartbeatInterval: Duration = .seconds(15)

    private struct Reader {
        var writingSince: ContinuousClock.Instant?
        let drop: @Sendable () -> Void
    }

    private struct State {
        var nextID: UInt64 = 0
        var readers: [UInt64: Reader] = [:]
        var dropped: UInt64 = 0
    }

    private let state = Mutex(State())
    /// An element each time that the first reader enters.
    let beginnings: AsyncStream<Void>
    private let beginning: AsyncStream<Void>.Continuation
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Creates an empty set of readers; `now` is the clock for their writes.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
        (self.beginnings, self.beginning) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The number of current readers, and of all readers dropped so far.
    var counts: (readers: Int, dropped: UInt64) { self.state.withLock { ($0.readers.count, $0.dropped) } }

    /// Whether the reader has neither left nor been dropped.
    func contains(_ id: UInt64) -> Bool { self.state.withLock { $0.readers[id] != nil } }

    /// Ends all streams. The caller must wake the log's readers, which then notice the end.
    func stop() { self.state.withLock { $0.readers = [:] } }

    /// Admits a reader and returns its id; `drop` closes its connection.
    /// - Throws: `unavailable` if there are too many readers.
    func enter(_ drop: @escaping @Sendable () -> Void) throws(APIProblem) -> UInt64 {
        let (id, isFirst) = self.state.withLock { state -> (UInt64?, Bool) in
            guard state.readers.count < Self.limit else { return (nil, false) }
            state.nextID += 1
            state.readers[state.nextID] = Reader(writingSince: nil, drop: drop)
            return (state.nextID, state.readers.count == 1)
        }
        if isFirst { self.beginning.yield() }
        guard let id else {
            throw APIProblem(.unavailable, "there are \(Self.limit) readers of events already; try again when one has gone")
        }
        return id
    }

    func leave(_ id: UInt64) { self.state.withLock { _ = $0.readers.removeValue(forKey: id) } }

    /// Records that a write to the reader begins.
    func writing(_ id: UInt64) { self.state.withLock { $0.readers[id]?.writingSince = self.now() } }

    /// Records that the reader's buffers have taken the write.
    func written(_ id: UInt64) { self.state.withLock { $0.readers[id]?.writingSince = nil } }

    /// Drops the readers whose write has taken too long.
    func dropStalled() {
        let now = self.now()
        let stalled = self.state.withLock { state in
            let stalled = state.readers.filter { $0.value.writingSince.map { $0.duration(to: now) >= Self.stallTime } ?? false }
            for id in stalled.keys { state.readers[id] = nil }
            state.dropped += UInt64(stalled.count)
            return stalled.values
        }
        for reader in stalled { reader.drop() }
    }
}
