import DequeModule
import EarshotWire
import NIOCore
import Synchronization

/// The sending half of a stream: what the receiver permits, and the pump that keeps within it.
///
/// The node tells it what the peer says; the pump runs in its caller's task and never on the node. What is read from the body goes out
/// at once, whether it is a byte or a quarter of a megabyte, and nothing more is read before the receiver has room for it: so the
/// far reader's pace is the near writer's, and a pause costs no more memory than one piece of the body.
final class OutgoingFlow: Sendable {
    private struct State {
        /// Whom to write to, once the peer has accepted.
        var connection: Connection?
        var limit: UInt64 = 0
        var sent: UInt64 = 0
    }

    let meter = StreamMeter()
    /// The stream's last row, when it is over.
    let closed = OneShot<ByteStream>()
    private let state = Mutex(State())
    /// Something has changed; one reader.
    private let changes: AsyncStream<Void>
    private let changed: AsyncStream<Void>.Continuation

    init() {
        (self.changes, self.changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The receiver takes the bytes up to this one.
    func accepted(_ limit: UInt64, on connection: Connection) {
        self.state.withLock { state in
            state.connection = connection
            state.limit = limit
        }
        self.changed.yield()
    }

    /// How many of `wanted` bytes may go out now; they count as sent.
    private func reserve(_ wanted: Int) -> (connection: Connection, count: Int)? {
        self.state.withLock { state in
            guard let connection = state.connection, state.limit > state.sent else { return nil }
            let count = Int(min(UInt64(wanted), state.limit - state.sent))
            state.sent += UInt64(count)
            return (connection, count)
        }
    }

    /// Sends the body to its end, at the receiver's pace, and says that it has ended.
    ///
    /// Returns when everything is written; whether the receiver has taken it stands in ``closed``.
    /// - Throws: what the body throws; `CancellationError`.
    @concurrent func send(_ id: StreamID, _ body: some AsyncSequence<ByteBuffer, any Error> & Sendable) async throws {
        var changes = self.changes.makeAsyncIterator()
        while self.state.withLock({ $0.connection }) == nil {
            guard await changes.next() != nil else { throw CancellationError() }
        }
        var unwritten: Deque<(bytes: Int, written: EventLoopFuture<Void>)> = []
        var unwrittenBytes = 0
        for try await var piece in body {
            while piece.readableBytes > 0 {
                guard let (connection, count) = self.reserve(min(piece.readableBytes, WireLimits.streamData)) else {
                    guard await changes.next() != nil else { throw CancellationError() }
                    continue
                }
                guard let data = piece.readSlice(length: count) else { break }
                unwritten.append((count, connection.write([.streamData(StreamData(id: id, data: data))])))
                unwrittenBytes += count
                self.meter.add(count)
                // A little ahead of the kernel keeps both sides busy; more would only delay messages.
                while unwrittenBytes > EarshotLimits.streamUnwrittenBytes, let oldest = unwritten.popFirst() {
                    try await oldest.written.get()
                    unwrittenBytes -= oldest.bytes
                }
            }
        }
        try Task.checkCancellation()
        let (connection, sent) = self.state.withLock { ($0.connection, $0.sent) }
        connection?.send([.streamEnd(StreamEnd(id: id, size: sent))])
    }
}
