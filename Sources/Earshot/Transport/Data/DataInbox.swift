internal import Dispatch
import DequeModule
import NIOCore
import Synchronization

/// What has come on a data connection and waits for its reader: between the event loop, which puts, and one task or thread, which takes.
///
/// Bytes are copied, into blocks of the transfer's own that are used again: TLS decrypts into one buffer, and copies all of that where
/// a reader still holds what it had decrypted before.
///
/// Bounded: `put` says when it holds `limit` bytes, and `hasRoom` is called once it holds less than half of that again. Before it is read, which
/// may be never, ``unreadLimit`` counts.
final class DataInbox: Sendable {
    private struct State {
        var pieces: Deque<ByteBuffer> = []
        /// Blocks that their reader has given back.
        var spare: [ByteBuffer] = []
        var bytes = 0
        var isFull = false
        /// Whether anybody has asked for what has come.
        var isRead = false
        /// Set once: how it ended. What came before is still to be taken.
        var end: Result<Void, EarshotError>?
        /// Wakes the readers that wait for bytes: all of them, and each looks again.
        var waiters: [@Sendable () -> Void] = []

        mutating func takeWaiters() -> [@Sendable () -> Void] {
            defer { self.waiters = [] }
            return self.waiters
        }
    }

    /// Blocks that are kept for use.
    private static let spareBlocks = 4

    /// What a stream is sure to have of its peer's window, in bytes: nobody is charged for what waits here.
    static let unreadLimit = Int(EarshotLimits.streamWindowMinimum)

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// Adds bytes; `false` where no more should be read for now. By one thread.
    func put(_ piece: ByteBuffer) -> Bool {
        var rest = piece
        var hasRoom = true
        while rest.readableBytes > 0 {
            var block = self.block(for: rest.readableBytes)
            let count = min(block.writableBytes, rest.readableBytes)
            guard let slice = rest.readSlice(length: count), count > 0 else { break }
            block.writeImmutableBuffer(slice)
            let filled = block
            block = ByteBuffer()
            let waiters: [@Sendable () -> Void]
            (hasRoom, waiters) = self.state.withLock { state -> (Bool, [@Sendable () -> Void]) in
                state.pieces.append(filled)
                state.bytes += count
                // Until its reader has caught up, not only until it has taken something: a writer that was told to stop waits for that.
                if state.bytes >= (state.isRead ? self.limit : min(self.limit, Self.unreadLimit)) { state.isFull = true }
                return (!state.isFull, state.takeWaiters())
            }
            for wake in waiters { wake() }
        }
        return hasRoom
    }

    /// Where the next bytes go: behind the last ones where there is room; else a block that was given back, or a new one. What it takes
    /// from the queue, its caller puts back.
    private func block(for count: Int) -> ByteBuffer {
        let block = self.state.withLock { state -> ByteBuffer? in
            if let last = state.pieces.last, last.writableBytes > 0 { return state.pieces.popLast() }
            return state.spare.popLast()
        }
        return block ?? ByteBufferAllocator().buffer(capacity: count < EarshotLimits.dataBlock / 8 ? count : EarshotLimits.dataBlock)
    }

    /// Takes a block for use again that its reader has done with.
    func giveBack(_ block: consuming ByteBuffer) {
        guard block.storageCapacity >= EarshotLimits.dataBlock else { return }
        // Not cleared, which would make another one where a reader still holds it, but written to from its beginning.
        block.moveReaderIndex(to: 0)
        block.moveWriterIndex(to: 0)
        let spare = block
        self.state.withLock { state in
            if state.spare.count < Self.spareBlocks { state.spare.append(spare) }
        }
    }

    /// Nothing comes any more; the first end counts.
    func end(_ result: Result<Void, EarshotError>) {
        let waiters = self.state.withLock { state -> [@Sendable () -> Void] in
            if state.end == nil { state.end = result }
            return state.takeWaiters()
        }
        for wake in waiters { wake() }
    }

    /// All that is here, for a reader of another kind.
    func takeAll() -> (pieces: [ByteBuffer], end: Result<Void, EarshotError>?) {
        self.state.withLock { state in
            defer { state.pieces = [] }
            return (Array(state.pieces), state.end)
        }
    }

    /// The next bytes; `nil` at the end. `hasRoom` is called where reading was held up and need not be any more.
    func next(hasRoom: () -> Void) async throws(EarshotError) -> ByteBuffer? {
        while true {
            if let next = try self.take(hasRoom) { return next.bytes }
            await withCheckedContinuation { continuation in self.wait { continuation.resume() } }
        }
    }

    /// The same for a thread of its own, which waits here: to be suspended and resumed costs two more changes of thread.
    func nextBlocking(hasRoom: () -> Void) throws(EarshotError) -> ByteBuffer? {
        while true {
            if let next = try self.take(hasRoom) { return next.bytes }
            let semaphore = DispatchSemaphore(value: 0)
            self.wait { semaphore.signal() }
            semaphore.wait()
        }
    }

    /// What comes next: bytes, or `nil` for the end.
    private struct Next {
        let bytes: ByteBuffer?
    }

    /// What comes next, where it is here already.
    private func take(_ hasRoom: () -> Void) throws(EarshotError) -> Next? {
        let (piece, end, isRelieved) = self.state.withLock { state in
            state.isRead = true
            guard let piece = state.pieces.popFirst() else { return (ByteBuffer?.none, state.end, false) }
            state.bytes -= piece.readableBytes
            let isRelieved = state.isFull && state.bytes < self.limit / 2
            if isRelieved { state.isFull = false }
            return (piece, nil, isRelieved)
        }
        if isRelieved { hasRoom() }
        if let piece { return Next(bytes: piece) }
        guard let end else { return nil }
        try end.get()
        return Next(bytes: nil)
    }

    /// Has `wake` called once there is something to take, which may be at once.
    private func wait(_ wake: @escaping @Sendable () -> Void) {
        let isWaiting = self.state.withLock { state in
            guard state.pieces.isEmpty, state.end == nil else { return false }
            state.waiters.append(wake)
            return true
        }
        if !isWaiting { wake() }
    }
}
