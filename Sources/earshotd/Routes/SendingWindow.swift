internal import EarshotWaiting
internal import Synchronization

/// Limits the bytes of a request that are in flight: one task takes, another releases. An amount larger than the whole window is taken
/// alone.
final class SendingWindow: Sendable {
    private struct State {
        var taken = 0
        var isClosed = false
    }

    private let limit: Int
    private let state = Mutex(State())
    private let changes = Changes()

    /// Creates a window of this many bytes.
    init(limit: Int) { self.limit = limit }

    /// Waits until there is room.
    /// - Throws: `CancellationError` if the window was closed or the task is cancelled.
    func take(_ amount: Int) async throws {
        while true {
            let seen = self.changes.count
            let hasRoom = try self.state.withLock { state in
                guard !state.isClosed else { throw CancellationError() }
                guard state.taken == 0 || state.taken + amount <= self.limit else { return false }
                state.taken += amount
                return true
            }
            if hasRoom { return }
            guard await self.changes.wait(after: seen) else { throw CancellationError() }
        }
    }

    /// Releases an amount that was taken.
    func release(_ amount: Int) {
        self.state.withLock { $0.taken -= amount }
        self.changes.tell()
    }

    /// Closes the window, and ends all waiting.
    func close() {
        self.state.withLock { $0.isClosed = true }
        self.changes.tell()
    }
}
