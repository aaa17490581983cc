import Synchronization

/// Notifies any number of tasks of changes.
///
/// A waiting task first reads ``count``, then checks its condition, and then waits for a higher count. No change is therefore missed,
/// however many tasks wait. An `AsyncStream` would crash the process if two tasks waited for it at once.
package final class Changes: Sendable {
    private struct State {
        var count: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of changes so far.
    package var count: UInt64 { self.state.withLock { $0.count } }

    /// Notifies all waiting tasks of a change.
    package func tell() {
        let waiters = self.state.withLock { state in
            state.count &+= 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for a change after `count`. Returns `false` if the task is cancelled.
    package func wait(after count: UInt64) async -> Bool {
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
