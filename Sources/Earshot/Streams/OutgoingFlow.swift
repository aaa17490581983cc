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
    private enum Route {
        case control
        /// What went over it is kept until the receiver has taken it.
        case data(DataConnection, Unacknowledged)
    }

    private struct State {
        /// Whom to write to, once the peer has accepted.
        var connection: Connection?
        /// The first limit: how far the sender may be ahead of what the far reader has taken.
        var window: UInt64 = 0
        var limit: UInt64 = 0
        var sent: UInt64 = 0
        var route = Route.control
        var isLarge = false
        var hasEnded = false
    }

    private enum Sent {
        case onControl(count: Int, written: EventLoopFuture<Void>)
        case data(ByteBuffer, DataConnection)

        var count: Int {
            switch self {
            case .onControl(let count, _): count
            case .data(let bytes, _): bytes.readableBytes
            }
        }
    }

    let meter: StreamMeter
    private let id: StreamID
    private let isLarge: @Sendable () -> Void
    private let state = Mutex(State())
    /// Tells the pump.
    private let changes = Changes()

    /// `isLarge` is called once, when so much has gone out that a data connection is worth its while.
    init(_ id: StreamID, _ timers: Timers, isLarge: @escaping @Sendable () -> Void) {
        self.id = id
        self.meter = StreamMeter(timers)
        self.isLarge = isLarge
    }

    /// The receiver takes the bytes up to this one.
    func accepted(_ limit: UInt64, on connection: Connection) {
        self.state.withLock { state in
            if state.connection == nil { state.window = limit }
            state.connection = connection
            state.limit = limit
            if case .data(let data, var kept) = state.route {
                kept.drop(before: limit - min(limit, state.window))
                state.route = .data(data, kept)
            }
        }
        self.changes.tell()
    }

    /// It is over: what was sent is of no use any more.
    func close() {
        self.state.withLock { state in
            state.connection = nil
            state.route = .control
        }
    }

    // MARK: Where the bytes go

    /// Asks the receiver for a data connection; `false` where there is nothing left for it to carry.
    func askForData() -> Bool {
        self.state.withLock { state in
            guard let connection = state.connection, !state.hasEnded else { return false }
            connection.send([.streamReroute(StreamReroute(id: self.id, offset: state.sent))])
            return true
        }
    }

    /// Goes on over this data connection; `false` where there is nothing left for it to carry.
    func move(to data: DataConnection) -> Bool {
        self.state.withLock { state in
            // What may be called back is kept: as much as the receiver's window, which a peer may say to have no end.
            guard let connection = state.connection, !state.hasEnded, case .control = state.route,
                state.window <= EarshotLimits.streamWindows
            else { return false }
            connection.send([.streamRerouted(StreamReroute(id: self.id, offset: state.sent))])
            state.route = .data(data, Unacknowledged(from: state.sent))
            return true
        }
    }

    /// The receiver has bytes only up to `offset`: goes on there over the control connection, and says again that it has ended where it has.
    ///
    /// Not in the pump, which may be waiting for its body: the far reader is not to wait for that.
    func calledBack(to offset: UInt64) {
        self.state.withLock { state in
            guard let connection = state.connection, case .data(_, var kept) = state.route else { return }
            kept.drop(before: offset)
            state.route = .control
            var frames: [Frame] = [.streamRerouted(StreamReroute(id: self.id, offset: offset))]
            frames += kept.pieces(upTo: WireLimits.streamData).map { .streamData(StreamData(id: self.id, data: $0)) }
            if state.hasEnded { frames.append(.streamEnd(StreamEnd(id: self.id, size: state.sent))) }
            connection.send(frames)
        }
    }

    // MARK: Sending

    /// Sends the body to its end, at the receiver's pace, and says that it has ended.
    ///
    /// Returns when everything is written; whether the receiver has taken it the core answers.
    /// - Throws: what the body throws; `CancellationError`.
    @concurrent func send(_ body: some AsyncSequence<ByteBuffer, any Error> & Sendable) async throws {
        while true {
            let seen = self.changes.count
            guard self.state.withLock({ $0.connection }) == nil else { break }
            guard await self.changes.wait(after: seen) else { throw CancellationError() }
        }
        var unwritten: Deque<(bytes: Int, written: EventLoopFuture<Void>)> = []
        var unwrittenBytes = 0
        for try await var piece in body {
            while piece.readableBytes > 0 {
                let seen = self.changes.count
                switch self.sendSome(of: piece) {
                case nil:
                    guard await self.changes.wait(after: seen) else { throw CancellationError() }
                case .onControl(let count, let written):
                    piece.moveReaderIndex(forwardBy: count)
                    unwritten.append((count, written))
                    unwrittenBytes += count
                    // A little ahead of the kernel keeps both sides busy; more would only delay messages.
                    while unwrittenBytes > EarshotLimits.streamUnwrittenBytes, let oldest = unwritten.popFirst() {
                        // What is lost with the connection the core knows of, and says what it comes to.
                        try? await oldest.written.get()
                        unwrittenBytes -= oldest.bytes
                    }
                case .data(let bytes, let data):
                    piece.moveReaderIndex(forwardBy: bytes.readableBytes)
                    // What is lost with the connection the receiver calls back.
                    try? await data.write(bytes)
                }
            }
        }
        try Task.checkCancellation()
        self.state.withLock { state in
            state.hasEnded = true
            state.connection?.send([.streamEnd(StreamEnd(id: self.id, size: state.sent))])
        }
    }

    /// Sends as much of the piece as the receiver permits, or says over which data connection to send it; `nil` where it permits nothing.
    private func sendSome(of piece: ByteBuffer) -> Sent? {
        let (sent, hasGrown) = self.state.withLock { state -> (Sent?, Bool) in
            guard let connection = state.connection, state.limit > state.sent else { return (nil, false) }
            let permitted = min(UInt64(min(piece.readableBytes, WireLimits.streamData)), state.limit - state.sent)
            guard let bytes = piece.getSlice(at: piece.readerIndex, length: Int(permitted)) else { return (nil, false) }
            state.sent += permitted
            let hasGrown = !state.isLarge && state.sent >= EarshotLimits.streamRerouteAfter
            if hasGrown { state.isLarge = true }
            // In the lock, so that nothing comes between the counting and the writing: the order of the frames is that of the counts.
            switch state.route {
            case .control:
                let written = connection.write([.streamData(StreamData(id: self.id, data: bytes))])
                return (.onControl(count: bytes.readableBytes, written: written), hasGrown)
            case .data(let data, var kept):
                state.route = .control
                kept.append(bytes)
                // The limit may have been raised by more than a window.
                kept.drop(before: state.limit - min(state.limit, state.window))
                state.route = .data(data, kept)
                return (.data(bytes, data), hasGrown)
            }
        }
        if let sent { self.meter.add(sent.count) }
        if hasGrown { self.isLarge() }
        return sent
    }
}
