public import EarshotCore
import Synchronization

/// Messages that were handed over together, and what became of each: told by the node, awaited by their caller.
///
/// One wait for all of them, however many they are, instead of a task and a continuation for each.
public final class MessageBatch: Sendable {
    /// What became of one message: refused before it was sent, or its recipients' outcomes.
    public typealias Outcome = Result<SentMessage, EarshotError>

    private enum State {
        case open([CheckedContinuation<[Outcome], Never>])
        case settled([Outcome])
    }

    private let state = Mutex(State.open([]))

    init() {}

    /// What became of each is known.
    func settle(_ outcomes: [Outcome]) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<[Outcome], Never>] in
            guard case .open(let waiters) = state else { return [] }
            state = .settled(outcomes)
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: outcomes) }
    }

    /// What became of the messages, in the order in which they were handed over, once that is decided for all of them.
    public func outcomes() async -> [Outcome] {
        await withCheckedContinuation { continuation in
            let settled = self.state.withLock { state -> [Outcome]? in
                switch state {
                case .settled(let outcomes): return outcomes
                case .open(let waiters):
                    state = .open(waiters + [continuation])
                    return nil
                }
            }
            if let settled { continuation.resume(returning: settled) }
        }
    }
}
