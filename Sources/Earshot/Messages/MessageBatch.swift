public import EarshotCore
import Synchronization

/// Messages that were submitted together, and their outcomes. The node sets the outcomes, and the caller awaits them.
///
/// One wait covers all messages, instead of a task and a continuation for each.
public final class MessageBatch: Sendable {
    /// The outcome of one message: an error before it was sent, or the outcomes of its recipients.
    public typealias Outcome = Result<SentMessage, EarshotError>

    private enum State {
        case open([CheckedContinuation<[Outcome], Never>])
        case settled([Outcome])
    }

    private let state = Mutex(State.open([]))

    init() {}

    /// Sets the outcomes of all messages.
    func settle(_ outcomes: [Outcome]) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<[Outcome], Never>] in
            guard case .open(let waiters) = state else { return [] }
            state = .settled(outcomes)
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: outcomes) }
    }

    /// Waits until the outcomes of all messages are decided, and returns them in the order of submission.
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
