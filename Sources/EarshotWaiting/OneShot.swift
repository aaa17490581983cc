import Synchronization

/// A value that is set once, and the tasks that wait for it.
///
/// Cancelling a waiting task does not end its wait: the producer must always set the value.
package final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case pending([CheckedContinuation<Value, Never>])
        case settled(Value)
    }

    private let state = Mutex(State.pending([]))

    package init() {}

    /// Sets the value. Only the first call has an effect.
    package func settle(_ value: Value) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Value, Never>] in
            guard case .pending(let waiters) = state else { return [] }
            state = .settled(value)
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    /// Waits for the value and returns it.
    package func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = self.state.withLock { state -> Value? in
                switch state {
                case .settled(let value): return value
                case .pending(var waiters):
                    waiters.append(continuation)
                    state = .pending(waiters)
                    return nil
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
