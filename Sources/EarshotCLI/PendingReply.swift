import Synchronization

/// A request to the daemon whose reply may still be pending when a signal arrives: the interruption waits for the reply, and then undoes
/// its effect.
///
/// The daemon acts as soon as it has the request. Waiting for the reply makes sure that nothing is left behind.
final class PendingReply<Value: Sendable>: Sendable {
    private struct State {
        var isAsking = false
        var value: Value?
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Sends the request and remembers the reply.
    func ask(_ question: () async throws -> Value) async throws -> Value {
        self.state.withLock { $0.isAsking = true }
        do {
            let value = try await question()
            self.answered(value)
            return value
        } catch {
            self.answered(nil)
            throw error
        }
    }

    private func answered(_ value: Value?) {
        let waiting = self.state.withLock { state in
            state.isAsking = false
            state.value = value
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits for a pending reply and returns it; `nil` if nothing was requested or the request failed.
    func answer() async -> Value? {
        await withCheckedContinuation { continuation in
            let isKnown = self.state.withLock { state in
                if state.isAsking { state.waiting.append(continuation) }
                return !state.isAsking
            }
            if isKnown { continuation.resume() }
        }
        return self.state.withLock { $0.value }
    }
}
