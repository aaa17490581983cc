internal import Dispatch
import DequeModule
package import NIOCore
import Synchronization

/// Received bytes of a data connection that wait for their reader. The event loop adds bytes, and one task or thread takes them.
///
/// Bytes are copied into the transfer's own blocks, which are used again. TLS decrypts into one buffer, and would copy all of it if a
/// reader still held earlier bytes.
///
/// The size is bounded: `put` returns `false` at `limit` bytes, and `hasRoom` is called when less than half of that remains. Until the
/// first read, which may never come, the limit is ``unreadLimit``.
package final class DataInbox: Sendable {
    private struct State {
        var pieces: Deque<ByteBuffer> = []
        /// Blocks that the reader has returned.
        var spare: [ByteBuffer] = []
        var bytes = 0
        var isFull = false
        /// Whether a read has been attempted.
        var isRead = false
        /// The end of the connection, set once. Earlier bytes can still be taken.
        var end: Result<Void, EarshotError>?
        /// The readers that wait for bytes. All of them are woken, and each checks again.
        var waiters: [@Sendable () -> Void] = []

        mutating func takeWaiters() -> [@Sendable () -> Void] {
            defer { self.waiters = [] }
            return self.waiters
        }
    }

    /// The maximum number of spare blocks.
    private static let spareBlocks = 4

    /// The part of the peer's window that a stream always has, in bytes. Bytes in this inbox are charged to no account.
    static let unreadLimit = Int(EarshotLimits.streamWindowMinimum)

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int) {
        self.limit = limit
    }

    /// Adds bytes. Returns `false` if reading has to stop for now. Called by one thread.
    package func put(_ piece: ByteBuffer) -> Bool {
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
                // Remains set until the reader has caught up, because the writer waits for that call after it has stopped.
                if state.bytes >= (state.isRead ? self.limit : min(self.limit, Self.unreadLimit)) { state.isFull = true }
                return (!state.isFull, state.takeWaiters())
            }
            for wake in waiters { wake() }
        }
        return hasRoom
    }

    /// Returns a buffer for the next bytes: the last one if it has room, else a returned block or a new one. The last one is removed from
    /// the queue, and the caller adds it again.
    private func block(for count: Int) -> ByteBuffer {
        let block = self.state.withLock { state -> ByteBuffer? in
            if let last = state.pieces.last, last.writableBytes > 0 { return state.pieces.popLast() }
            return state.spare.popLast()
        }
        return block ?? ByteBufferAllocator().buffer(capacity: count < EarshotLimits.dataBlock / 8 ? count : EarshotLimits.dataBlock)
    }

    /// Returns a block that its reader no longer needs.
    package func giveBack(_ block: consuming ByteBuffer) {
        guard block.storageCapacity >= EarshotLimits.dataBlock else { return }
        // Resets the indices instead of clearing: clearing would allocate a new block if a reader still held this one.
        block.moveReaderIndex(to: 0)
        block.moveWriterIndex(to: 0)
        let spare = block
        self.state.withLock { state in
            if state.spare.count < Self.spareBlocks { state.spare.append(spare) }
        }
    }

    /// Ends the input. Only the first end is recorded.
    package func end(_ result: Result<Void, EarshotError>) {
        let waiters = self.state.withLock { state -> [@Sendable () -> Void] in
            if state.end == nil { state.end = result }
            return state.takeWaiters()
        }
        for wake in waiters { wake() }
    }

    /// Removes and returns everything, for another kind of reader.
    func takeAll() -> (pieces: [ByteBuffer], end: Result<Void, EarshotError>?) {
        self.state.withLock { state in
            defer { state.pieces = [] }
            return (Array(state.pieces), state.end)
        }
    }

    /// Waits for the next bytes and returns them; `nil` at the end. `hasRoom` is called if reading was suspended and can resume.
    package func next(hasRoom: () -> Void) async throws(EarshotError) -> ByteBuffer? {
        while true {
            if let next = try self.take(hasRoom) { return next.bytes }
            await withCheckedContinuation { continuation in self.wait { continuation.resume() } }
        }
    }

    /// Returns the next bytes on a thread of its own, which blocks. Suspending and resuming a task would cost two more changes of thread.
    func nextBlocking(hasRoom: () -> Void) throws(EarshotError) -> ByteBuffer? {
        while true {
            if let next = try self.take(hasRoom) { return next.bytes }
            let semaphore = DispatchSemaphore(value: 0)
            self.wait { semaphore.signal() }
            semaphore.wait()
        }
    }

    /// The next bytes, or `nil` for the end.
    private struct Next {
        let bytes: ByteBuffer?
    }

    /// Removes and returns the next bytes or the end, if available.
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

    /// Calls `wake` once, when there is something to take. That may be immediately.
    private func wait(_ wake: @escaping @Sendable () -> Void) {
        let isWaiting = self.state.withLock { state in
            guard state.pieces.isEmpty, state.end == nil else { return false }
            state.waiters.append(wake)
            return true
        }
        if !isWaiting { wake() }
    }
}
