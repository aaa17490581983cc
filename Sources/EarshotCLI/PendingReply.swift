import Synchronization

/// A request to the daemon whose reply may still be under way when a signal comes: the interruption waits for it, and takes back what came
/// of it.
///
/// The daemon makes it as soon as it has the question. Taken back only once it is known, it cannot be left standing.
final class PendingReply<Value: Sendable>: Sendable {
    private struct State {
        var isAsking = false
        var value: Value?
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Asks, and remembers the answer.
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

    /// What was answered, once it is; `nil` where nothing was asked or nothing came of it.
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
