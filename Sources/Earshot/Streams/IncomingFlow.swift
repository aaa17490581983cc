import DequeModule
import EarshotWire
import NIOCore
import Synchronization

/// The receiving half of a stream: what has come and was not taken yet, which the window bounds.
///
/// The node appends what the peer sends; one reader takes it. Bytes count as taken when the reader asks for the next ones, and only
/// then is the sender permitted more: a reader that pauses holds no more than the window here.
final class IncomingFlow: Sendable {
    struct State {
        var pieces: Deque<ByteBuffer> = []
        /// Bytes in the reader's hands.
        var lent = 0
        var taken: UInt64 = 0
        var limit: UInt64
        /// Bytes that have come, over either connection.
        var received: UInt64 = 0
        /// How many there are, once the sender has said so.
        var size: UInt64?
        var end: End?
        /// Where the reader can have the bytes of a data connection moved, so that they do not pass here.
        var outlet: StreamOutlet?
        /// A data connection whose bytes come next, behind the pieces; and the one that is being moved.
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

    /// Pieces up to this size are put together, so that a stream of single bytes costs little more than its bytes.
    private static let smallPiece = 16 * 1024
    private static let joinedPiece = 256 * 1024

    let meter: StreamMeter
    private let window: UInt64
    private let grant: @Sendable (UInt64) -> Void
    let state: Mutex<State>
    /// Tells its reader.
    let changes = Changes()

    /// `grant` is called with each new limit; the first one, `window`, is the caller's to send.
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

    /// The same over a data connection, where only this counts them: `false` where it is more than the sender may send.
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

    /// The sender has sent all: so many bytes, of which some may still be on their way over a data connection.
    func finish(at size: UInt64) {
        let moving = self.state.withLock { state -> DataConnection? in
            state.size = size
            guard state.received == size, state.end == nil else { return nil }
            state.end = .whole
            return state.moving
        }
        // The forwarder waits for more, and there is none.
        moving?.close()
        self.changes.tell()
    }

    /// How many bytes have come, for the sender to go on there over the control connection; `nil` where it is over, as all have come.
    /// Nothing is appended meanwhile.
    func callBack() -> UInt64? {
        self.state.withLock { state in
            guard state.end == nil else { return nil }
            state.size = nil
            return state.received
        }
    }

    /// No more will come, and what came and was not taken is of no use.
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
            return (state.moving, state.outlet.take().flatMap { state.moving == nil ? nil : $0 })
        }
        moving?.close()
        // Its thread may be waiting for the reader.
        outlet?.interrupt()
        self.changes.tell()
    }

    /// The next bytes, as soon as there are some; `nil` at the end. Asking for them says that those before were taken. One reader.
    /// - Throws: why the stream was cut short; `cancelled` where the reader's task was.
    func next() async throws(EarshotError) -> ByteBuffer? {
        while true {
            switch try await self.step() {
            case .bytes(let piece): return piece
            // Comes only to who has an outlet.
            case .connection(let connection): connection.close()
            case .end: return nil
            }
        }
    }

    /// The same for a reader that takes data connections itself.
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
                // The stream's row stays, and must not keep the reader's connection.
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
