import DequeModule
import EarshotWaiting
import EarshotWire
import NIOCore
import Synchronization

/// The sending half of a stream: the receiver's limit, and the pump that observes it.
///
/// The node passes on the peer's frames. The pump runs in its caller's task, never on the node. It sends each piece of the body
/// immediately, whatever its size, and reads no more until the receiver has room for it. The reader's pace therefore limits the writer's,
/// and a pause takes no more memory than one piece of the body.
final class OutgoingFlow: Sendable {
    private enum Route {
        case control
        /// A data connection. Bytes that were sent over it are kept until the receiver has taken them.
        case data(DataConnection, Unacknowledged)
    }

    private struct State {
        /// The peer's connection, once the peer has accepted.
        var connection: Connection?
        /// The first limit: how far the sender may be ahead of the bytes that the peer's reader has taken.
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
    /// Notifies the pump.
    private let changes = Changes()

    /// Creates a flow. `isLarge` is called once, when enough has been sent to justify a data connection.
    init(_ id: StreamID, _ timers: Timers, isLarge: @escaping @Sendable () -> Void) {
        self.id = id
        self.meter = StreamMeter(timers)
        self.isLarge = isLarge
    }

    /// Sets the receiver's limit.
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

    /// Ends the flow, and drops the sent bytes that are kept.
    func close() {
        self.state.withLock { state in
            state.connection = nil
            state.route = .control
        }
    }

    // MARK: Routes

    /// Asks the receiver for a data connection. Returns `false` if nothing is left to send.
    func askForData() -> Bool {
        self.state.withLock { state in
            guard let connection = state.connection, !state.hasEnded else { return false }
            connection.send([.stream(.reroute(StreamReroute(id: self.id, offset: state.sent)))])
            return true
        }
    }

    /// Continues over this data connection. Returns `false` if nothing is left to send.
    func move(to data: DataConnection) -> Bool {
        self.state.withLock { state in
            // The kept bytes may be as many as the receiver's window, which a peer may declare unlimited.
            guard let connection = state.connection, !state.hasEnded, case .control = state.route,
                state.window <= EarshotLimits.streamWindows
            else { return false }
            connection.send([.stream(.rerouted(StreamReroute(id: self.id, offset: state.sent)))])
            state.route = .data(data, Unacknowledged(from: state.sent))
            return true
        }
    }

    /// Continues over the control connection at `offset`, up to which the receiver has bytes. If the stream has ended, its end is sent
    /// again.
    ///
    /// This does not run in the pump, which may be waiting for its body: the peer's reader must not wait for that.
    func calledBack(to offset: UInt64) {
        self.state.withLock { state in
            guard let connection = state.connection, case .data(_, var kept) = state.route else { return }
            kept.drop(before: offset)
            state.route = .control
            var frames: [Frame] = [.stream(.rerouted(StreamReroute(id: self.id, offset: offset)))]
            frames += kept.pieces(upTo: WireLimits.streamData).map { .stream(.data(StreamData(id: self.id, data: $0))) }
            if state.hasEnded { frames.append(.stream(.end(StreamEnd(id: self.id, size: state.sent)))) }
            connection.send(frames)
        }
    }

    // MARK: Sending

    /// Sends the body to its end, at the receiver's pace, and then the end of the stream.
    ///
    /// Returns when everything is written. The core reports whether the receiver has taken it. With `mayBlock`, the caller has a thread of
    /// its own, which writes to a plaintext data connection itself.
    /// - Throws: the error of the body; `CancellationError`.
    @concurrent func send(_ body: some AsyncSequence<ByteBuffer, any Error> & Sendable, mayBlock: Bool = false) async throws {
        while true {
            let seen = self.changes.count
            guard self.state.withLock({ $0.connection }) == nil else { break }
            guard await self.changes.wait(after: seen) else { throw CancellationError() }
        }
        var unwritten: Deque<(bytes: Int, written: EventLoopFuture<Void>)> = []
        var unwrittenBytes = 0
        var taken: (connection: DataConnection, socket: DataSocket?)?
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
                    // A small lead over the kernel keeps both sides busy. A larger one would only delay messages.
                    while unwrittenBytes > EarshotLimits.streamUnwrittenBytes, let oldest = unwritten.popFirst() {
                        // The core learns of bytes that are lost with the connection, and reports the result.
                        try? await oldest.written.get()
                        unwrittenBytes -= oldest.bytes
                    }
                case .data(let bytes, let data):
                    piece.moveReaderIndex(forwardBy: bytes.readableBytes)
                    if mayBlock, taken?.connection !== data { taken = (data, await data.takeOver()?.socket) }
                    // The receiver requests bytes that are lost with the connection again.
                    if let socket = taken?.socket {
                        _ = bytes.withUnsafeReadableBytes { socket.send($0) }
                    } else {
                        try? await data.write(bytes)
                    }
                }
            }
        }
        try Task.checkCancellation()
        self.state.withLock { state in
            state.hasEnded = true
            state.connection?.send([.stream(.end(StreamEnd(id: self.id, size: state.sent)))])
        }
    }

    /// Sends as much of the piece as the receiver's limit allows, or returns the data connection to send it over. Returns `nil` if the
    /// limit allows nothing.
    private func sendSome(of piece: ByteBuffer) -> Sent? {
        let (sent, hasGrown) = self.state.withLock { state -> (Sent?, Bool) in
            guard let connection = state.connection, state.limit > state.sent else { return (nil, false) }
            let permitted = min(UInt64(min(piece.readableBytes, WireLimits.streamData)), state.limit - state.sent)
            guard let bytes = piece.getSlice(at: piece.readerIndex, length: Int(permitted)) else { return (nil, false) }
            state.sent += permitted
            let hasGrown = !state.isLarge && state.sent >= EarshotLimits.streamRerouteAfter
            if hasGrown { state.isLarge = true }
            // Within the lock, so that the frames are written in the order in which their bytes are counted.
            switch state.route {
            case .control:
                let written = connection.write([.stream(.data(StreamData(id: self.id, data: bytes)))])
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
