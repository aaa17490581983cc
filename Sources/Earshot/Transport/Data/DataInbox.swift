import DequeModule
import NIOCore
import Synchronization

/// What has come on a data connection and waits for its reader: between the event loop, which puts, and one task, which takes.
///
/// Bounded: `put` says when it holds `limit` bytes, and `hasRoom` is called once it holds less than half of that again.
final class DataInbox: Sendable {
    private struct State {
        var pieces: Deque<ByteBuffer> = []
        var bytes = 0
        var isFull = false
        /// Set once: how it ended. What came before is still to be taken.
        var end: Result<Void, EarshotError>?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// Adds bytes; `false` where no more should be read for now.
    func put(_ piece: ByteBuffer) -> Bool {
        let (hasRoom, waiter) = self.state.withLock { state in
            state.pieces.append(piece)
            state.bytes += piece.readableBytes
            // Until its reader has caught up, not only until it has taken something: whoever was told to stop waits for that.
            if state.bytes >= self.limit { state.isFull = true }
            return (!state.isFull, state.waiter.take())
        }
        waiter?.resume()
        return hasRoom
    }

    /// Nothing comes any more; the first end counts.
    func end(_ result: Result<Void, EarshotError>) {
        let waiter = self.state.withLock { state in
            if state.end == nil { state.end = result }
            return state.waiter.take()
        }
        waiter?.resume()
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
            let (piece, end, isRelieved) = self.state.withLock { state in
                guard let piece = state.pieces.popFirst() else { return (ByteBuffer?.none, state.end, false) }
                state.bytes -= piece.readableBytes
                let isRelieved = state.isFull && state.bytes < self.limit / 2
                if isRelieved { state.isFull = false }
                return (piece, nil, isRelieved)
            }
            if isRelieved { hasRoom() }
            if let piece { return piece }
            if let end {
                try end.get()
                return nil
            }
            await withCheckedContinuation { continuation in
                let isWaiting = self.state.withLock { state in
                    guard state.pieces.isEmpty, state.end == nil else { return false }
                    state.waiter = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        }
    }
}
