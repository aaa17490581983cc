internal import Synchronization

/// Limits the bytes of a request that are in flight: one task takes, another releases. An amount larger than the whole window is taken
/// alone.
final class SendingWindow: Sendable {
    private struct State {
        var taken = 0
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let state = Mutex(State())

    /// Creates a window of this many bytes.
    init(limit: Int) { self.limit = limit }

    /// Waits until there is room.
    /// - Throws: `CancellationError` if the window was closed.
    func take(_ amount: Int) async throws {
        while true {
            let hasRoom = try self.state.withLock { state in
                guard !state.isClosed else { throw CancellationError() }
                guard state.taken == 0 || state.taken + amount <= self.limit else { return false }
                state.taken += amount
                return true
            }
            if hasRoom { return }
            await withCheckedContinuation { continuation in
                let isReady = self.state.withLock { state in
                    guard !state.isClosed, state.taken > 0 else { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }

    /// Releases an amount that was taken.
    func release(_ amount: Int) {
        self.wake { $0.taken -= amount }
    }

    /// Closes the window, and ends all waiting.
    func close() {
        self.wake { $0.isClosed = true }
    }

    private func wake(_ change: (inout sending State) -> Void) {
        let waiters = self.state.withLock { state in
            change(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
