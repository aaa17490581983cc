import DequeModule
import EarshotWaiting
import EarshotWire
import NIOCore
import Synchronization

/// The receiving half of a stream: bytes that were received and not taken yet, bounded by the window.
///
/// The node appends the peer's bytes, and one reader takes them. Bytes count as taken when the reader asks for the next ones. Only then
/// may the sender send more, so a paused reader never holds more than the window here.
final class IncomingFlow: Sendable {
    struct State {
        var pieces: Deque<ByteBuffer> = []
        /// Bytes that the reader is processing.
        var lent = 0
        var taken: UInt64 = 0
        var limit: UInt64
        /// Bytes received over either connection.
        var received: UInt64 = 0
        /// The total number of bytes, once the sender has reported it.
        var size: UInt64?
        var end: End?
        /// The reader's outlet, to which the bytes of a data connection can be moved without passing through here.
        var outlet: StreamOutlet?
        /// A data connection whose bytes follow the pieces, and the one that is being moved.
        var waiting: DataConnection?
        var moving: DataConnection?

        mutating func append(_ data: ByteBuffer) {
            self.received += UInt64(data.readableBytes)
            if self.received == self.size { self.end = .whole }
            if data.readableBytes <= IncomingFlow.smallPiece, var last = self.pieces.popLast() {
                guard last.readableBytes + data.readableBytes <= IncomingFlow.joinedPiece else {
                    self.pieces.append(last)
                    self.pieces.append(data.compacted)
                    return
                }
                last.writeImmutableBuffer(data)
                self.pieces.append(last)
            } else {
                self.pieces.append(data.compacted)
            }
        }
    }

    enum End {
        case whole
        case failed(EarshotError)
    }

    /// Pieces up to this size are combined, so that a stream of single bytes takes little more memory than its bytes.
    private static let smallPiece = 16 * 1024
    private static let joinedPiece = 256 * 1024

    let meter: StreamMeter
    private let window: UInt64
    private let grant: @Sendable (UInt64) -> Void
    let state: Mutex<State>
    /// Notifies the reader.
    let changes = Changes()

    /// Creates a flow. `grant` is called with each new limit. The caller sends the first limit, `window`.
    init(window: UInt64, _ timers: Timers, grant: @escaping @Sendable (UInt64) -> Void) {
        self.window = window
        self.meter = StreamMeter(timers)
        self.grant = grant
        self.state = Mutex(State(limit: window))
    }

    func append(_ data: ByteBuffer) {
        self.state.withLock { state in
            if state.end == nil { state.append(data) }
        }
        self.changes.tell()
    }

    /// Appends bytes of a data connection, which are counted only here. Returns `false` if they exceed the sender's limit.
    func appendCounted(_ data: ByteBuffer) -> Bool {
        let isPermitted = self.state.withLock { state in
            guard state.end == nil else { return false }
            let (count, overflow) = state.received.addingReportingOverflow(UInt64(data.readableBytes))
            guard !overflow, count <= min(state.limit, state.size ?? .max) else { return false }
            state.append(data)
            return true
        }
        self.changes.tell()
        return isPermitted
    }

    /// Records that the sender has sent everything, `size` bytes in total. Some of them may still be in flight on a data connection.
    func finish(at size: UInt64) {
        let moving = self.state.withLock { state -> DataConnection? in
            state.size = size
            guard state.received == size, state.end == nil else { return nil }
            state.end = .whole
            return state.moving
        }
        // Ends the forwarder, which would otherwise wait for more bytes.
        moving?.close()
        self.changes.tell()
    }

    /// Returns the number of received bytes, from which the sender continues over the control connection. Returns `nil` if the stream is
    /// over. Must not run concurrently with an append.
    func callBack() -> UInt64? {
        self.state.withLock { state in
            guard state.end == nil else { return nil }
            state.size = nil
            return state.received
        }
    }

    /// Ends the stream with an error, and drops the bytes that were not taken.
    func fail(_ error: EarshotError) {
        self.end(.failed(error))
    }

    private func end(_ end: End) {
        let (moving, outlet) = self.state.withLock { state -> (DataConnection?, StreamOutlet?) in
            switch (state.end, end) {
            case (nil, _), (.whole?, .failed): state.end = end
            case (.whole?, .whole), (.failed?, _): break
            }
            guard case .failed = end else { return (state.moving, nil) }
            state.pieces = []
            state.waiting = nil
            return (state.moving, state.outlet.take())
        }
        moving?.close()
        // The thread that moves bytes may be waiting for the reader.
        outlet?.interrupt()
        self.changes.tell()
    }

    /// Waits for the next bytes and returns them; `nil` at the end. The call also marks the previous bytes as taken. Only one reader is
    /// allowed.
    /// - Throws: the error that ended the stream; `cancelled` if the reader's task was cancelled.
    func next() async throws(EarshotError) -> ByteBuffer? {
        while true {
            switch try await self.step() {
            case .bytes(let piece): return piece
            // Only a reader with an outlet gets a connection.
            case .connection(let connection): connection.close()
            case .end: return nil
            }
        }
    }

    /// Returns the next step for a reader that takes data connections itself.
    func step() async throws(EarshotError) -> StreamContent.Step {
        self.noteTaken()
        while true {
            let seen = self.changes.count
            let (step, end) = self.state.withLock { state -> (StreamContent.Step?, End?) in
                if case .failed? = state.end { return (nil, state.end) }
                if let piece = state.pieces.popFirst() {
                    state.lent = piece.readableBytes
                    return (.bytes(piece), nil)
                }
                state.lent = 0
                if state.end == nil, let connection = state.waiting.take() {
                    state.moving = connection
                    return (.connection(connection), nil)
                }
                // The stream's row remains, and must not retain the reader's connection.
                if state.end != nil { state.outlet = nil }
                return (nil, state.end)
            }
            if let step { return step }
            switch end {
            case .whole?: return .end
            case .failed(let error)?: throw error
            case nil:
                guard await self.changes.wait(after: seen) else { throw EarshotError(.cancelled, "nobody reads the stream any more") }
            }
        }
    }

    func noteTaken() {
        let (bytes, limit) = self.state.withLock { state -> (Int, UInt64?) in
            let lent = state.lent
            state.lent = 0
            state.taken += UInt64(lent)
            guard state.end == nil, state.limit - state.taken <= self.window / 2 else { return (lent, nil) }
            state.limit = state.taken + self.window
            return (lent, state.limit)
        }
        if bytes > 0 { self.meter.add(bytes) }
        if let limit { self.grant(limit) }
    }
}
