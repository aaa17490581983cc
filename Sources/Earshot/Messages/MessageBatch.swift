import Synchronization

/// Messages that were handed over together, and what became of each: written by the node, awaited by their caller.
///
/// One wait for all of them, however many they are, instead of a task and a continuation for each.
public final class MessageBatch: Sendable {
    /// What became of one message: refused before it was sent, or its recipients' outcomes.
    public typealias Outcome = Result<SentMessage, EarshotError>

    /// One message of a batch, for those who decide what became of it.
    struct Place {
        let batch: MessageBatch
        let index: Int

        func settle(_ outcome: Outcome) { self.batch.settle(self.index, outcome) }
    }

    private struct State {
        var outcomes: [Outcome?]
        /// Messages of which nothing is known yet.
        var open: Int
        var waiters: [CheckedContinuation<Void, Never>] = []

        /// The first word counts.
        mutating func settle(_ index: Int, _ outcome: Outcome) {
            guard self.outcomes[index] == nil else { return }
            self.outcomes[index] = outcome
            self.open -= 1
        }
    }

    private let state: Mutex<State>

    init(count: Int) {
        self.state = Mutex(State(outcomes: Array(repeating: nil, count: count), open: count))
    }

    private func settle(_ index: Int, _ outcome: Outcome) {
        self.settle { $0.settle(index, outcome) }
    }

    /// Takes what is known at once of messages of the batch: by their index, `nil` where it is still to come.
    func settle(_ outcomes: [Outcome?]) {
        self.settle { state in
            for (index, outcome) in outcomes.enumerated() {
                if let outcome { state.settle(index, outcome) }
            }
        }
    }

    /// Wakes those who wait where nothing is open any more.
    private func settle(_ change: (inout State) -> Void) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            change(&state)
            guard state.open == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// What became of the messages, in the order in which they were handed over, once that is decided for all of them.
    public func outcomes() async -> [Outcome] {
        await withCheckedContinuation { continuation in
            let isDecided = self.state.withLock { state in
                if state.open > 0 { state.waiters.append(continuation) }
                return state.open == 0
            }
            if isDecided { continuation.resume() }
        }
        return self.state.withLock { $0.outcomes.compactMap(\.self) }
    }
}
