import DequeModule
import Synchronization

/// The node's one queue: what reaches it from outside its actor, in order, from any thread.
///
/// It is worked off on the node's event loop, in turns with the connections of that loop (``LoopTurns``), so that what a connection there
/// has read reaches the node without a change of threads. Nothing is dealt with while it is handed in: what the node itself leads to, or a
/// handler that the node has just called, waits like the rest.
final class NodeInputs: Sendable {
    private struct State {
        var waiting: Deque<NodeInput> = []
        /// Deals with one; `nil` before the node runs.
        var handle: (@Sendable (NodeInput) -> Void)?
        /// Whether one of the loop's turns is asked for.
        var isScheduled = false
        /// Nothing more is taken in.
        var isFinished = false
        /// Waits until all of it is dealt with.
        var end: CheckedContinuation<Void, Never>?

        /// Whether all is dealt with that ever will be.
        var isOver: Bool { self.isFinished && self.waiting.isEmpty && !self.isScheduled }

        /// Whether a turn is to be asked for now.
        mutating func schedules() -> Bool {
            guard !self.isScheduled, self.handle != nil, !self.waiting.isEmpty else { return false }
            self.isScheduled = true
            return true
        }

        mutating func takeEnd() -> CheckedContinuation<Void, Never>? {
            guard self.isOver else { return nil }
            defer { self.end = nil }
            return self.end
        }
    }

    private let turns: LoopTurns
    private let state = Mutex(State())

    init(_ turns: LoopTurns) { self.turns = turns }

    func yield(_ input: NodeInput) {
        let (isTaken, isFirst) = self.state.withLock { state in
            guard !state.isFinished else { return (false, false) }
            state.waiting.append(input)
            return (true, state.schedules())
        }
        if isFirst { self.ask() }
        // The node would close it at its end, and does not know of it.
        if !isTaken, case .connection(.proven(let connection)) = input { connection.close() }
    }

    /// Has `handle` called on the loop, with what waits already and with all that comes, until the task is cancelled; returns when the last one
    /// is dealt with.
    func run(_ handle: @escaping @Sendable (NodeInput) -> Void) async {
        let isFirst = self.state.withLock { state in
            state.handle = handle
            return state.schedules()
        }
        if isFirst { self.ask() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = self.state.withLock { state in
                    guard !state.isOver else { return true }
                    state.end = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            self.finish()
        }
        self.state.withLock { $0.handle = nil }
    }

    /// Takes nothing in any more.
    private func finish() {
        let end = self.state.withLock { state in
            state.isFinished = true
            return state.takeEnd()
        }
        end?.resume()
    }

    private func ask() {
        self.turns.take(first: true) { self.step() }
    }

    /// One at a time: the loop's sockets come between two.
    private func step() {
        let (input, handle) = self.state.withLock { ($0.waiting.popFirst(), $0.handle) }
        if let input, let handle { handle(input) }
        let (isMore, end) = self.state.withLock { state in
            state.isScheduled = false
            return (state.schedules(), state.takeEnd())
        }
        if isMore { self.ask() }
        end?.resume()
    }
}
