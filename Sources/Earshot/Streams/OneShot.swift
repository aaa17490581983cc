import Synchronization

/// A value that comes once, and the tasks that wait for it.
///
/// Waiting does not end by the waiting task's cancellation: the producer sees to it that the value comes.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case pending([CheckedContinuation<Value, Never>])
        case settled(Value)
    }

    private let state = Mutex(State.pending([]))

    /// The first value counts.
    func settle(_ value: Value) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Value, Never>] in
            guard case .pending(let waiters) = state else { return [] }
            state = .settled(value)
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    /// The value, as soon as there is one.
    func value() async -> Value {
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
