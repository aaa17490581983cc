internal import Earshot
internal import Synchronization

/// The readers of the event stream: how many there are, and which of them no longer take what is written.
///
/// A reader costs the daemon its connection and a position in the log, whatever its pace; but one that has stopped reading would keep
/// that for good, so it is dropped once a write to it has been under way for a minute ("Events" in earshot-api(7)). Nothing here runs by
/// itself: ``ControlServer`` calls ``dropStalled()`` every few seconds.
final class EventReaders: Sendable {
    /// Readers at a time; below the server's limit of connections, so that other calls are still answered.
    static let limit = 1_024
    /// How long a write may be under way before its reader is dropped.
    static let stallTime: Duration = .seconds(60)
    /// The time between two looks for stalled readers.
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
    /// There is a reader, and there was none before.
    let beginnings: AsyncStream<Void>
    private let beginning: AsyncStream<Void>.Continuation
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Readers that are watched by a clock.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
        (self.beginnings, self.beginning) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// How many there are now, and how many were dropped so far.
    var counts: (readers: Int, dropped: UInt64) { self.state.withLock { ($0.readers.count, $0.dropped) } }

    /// Whether the reader is still one: its connection is open, and it takes what is written.
    func contains(_ id: UInt64) -> Bool { self.state.withLock { $0.readers[id] != nil } }

    /// Ends the streams; the log's readers have to be woken to see it.
    func stop() { self.state.withLock { $0.readers = [:] } }

    /// Lets a reader in; `drop` closes its connection.
    /// - Throws: `unavailable` where there are too many.
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

    /// A write to the reader begins.
    func writing(_ id: UInt64) { self.state.withLock { $0.readers[id]?.writingSince = self.now() } }

    /// The reader's buffers took it.
    func written(_ id: UInt64) { self.state.withLock { $0.readers[id]?.writingSince = nil } }

    /// Drops those that have not taken anything for too long.
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
