internal import Synchronization

/// How much of a request may be under way: one task takes, another gives back. More than the whole is taken alone.
final class SendingWindow: Sendable {
    private struct State {
        var taken = 0
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let state = Mutex(State())

    /// A window of this many bytes.
    init(limit: Int) { self.limit = limit }

    /// Waits until there is room.
    /// - Throws: `CancellationError` where the window was closed.
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

    /// Gives back what was taken.
    func release(_ amount: Int) {
        self.wake { $0.taken -= amount }
    }

    /// No reader is to wait any more.
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
