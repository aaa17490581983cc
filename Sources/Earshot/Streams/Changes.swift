import Synchronization

/// Tells any number of tasks that something has changed.
///
/// A waiting task takes ``count`` first, then looks at what it waits for, and then waits for more than that: so no change is missed,
/// however many wait. An `AsyncStream` would end the process where two tasks wait for it at once.
final class Changes: Sendable {
    private struct State {
        var count: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    /// Changes so far.
    var count: UInt64 { self.state.withLock { $0.count } }

    /// Something has changed.
    func tell() {
        let waiters = self.state.withLock { state in
            state.count &+= 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until there were other changes than these; `false` where the task is cancelled.
    func wait(after count: UInt64) async -> Bool {
        let id = self.state.withLock { state in
            state.nextWaiter &+= 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = self.state.withLock { state in
                    if state.count != count || Task.isCancelled { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
        return !Task.isCancelled
    }
}
