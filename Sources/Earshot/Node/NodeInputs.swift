import DequeModule
import EarshotWaiting
import Synchronization

/// The node's queue of external input, in order, from any thread.
///
/// Inputs are handled on the node's event loop, in turns with the connections of that loop (``LoopTurns``). Input from such a connection
/// therefore needs no change of threads. Handing in an input never handles it: inputs from the node itself, or from a handler that the
/// node has just called, wait like all others.
final class NodeInputs: Sendable {
    private struct State {
        var waiting: Deque<NodeInput> = []
        /// Handles an input; `nil` before the node runs.
        var handle: (@Sendable (NodeInput) -> Void)?
        /// Whether a turn of the loop is scheduled.
        var isScheduled = false
        /// Whether the queue accepts no more input.
        var isFinished = false

        /// Whether all input is handled and no more will come.
        var isOver: Bool { self.isFinished && self.waiting.isEmpty && !self.isScheduled }

        /// Whether a turn has to be scheduled now; notes that it is.
        mutating func schedules() -> Bool {
            guard !self.isScheduled, self.handle != nil, !self.waiting.isEmpty else { return false }
            self.isScheduled = true
            return true
        }
    }

    private let turns: LoopTurns
    private let state = Mutex(State())
    /// Settled when all input is handled and no more will come.
    private let end = OneShot<Void>()

    init(_ turns: LoopTurns) { self.turns = turns }

    func yield(_ input: NodeInput) {
        let (isTaken, isFirst) = self.state.withLock { state in
            guard !state.isFinished else { return (false, false) }
            state.waiting.append(input)
            return (true, state.schedules())
        }
        if isFirst { self.ask() }
        // The node does not know of this connection, so it cannot close it.
        if !isTaken, case .connection(.proven(let connection)) = input { connection.close() }
    }

    /// Handles pending and later inputs with `handle` on the loop until the task is cancelled. Returns when the last input is handled.
    func run(_ handle: @escaping @Sendable (NodeInput) -> Void) async {
        let isFirst = self.state.withLock { state in
            state.handle = handle
            return state.schedules()
        }
        if isFirst { self.ask() }
        await withTaskCancellationHandler {
            await self.end.value()
        } onCancel: {
            self.finish()
        }
        self.state.withLock { $0.handle = nil }
    }

    /// Stops accepting input.
    private func finish() {
        let isOver = self.state.withLock { state in
            state.isFinished = true
            return state.isOver
        }
        if isOver { self.end.settle(()) }
    }

    private func ask() {
        self.turns.take(first: true) { self.step() }
    }

    /// Handles one input, so that the loop can serve its sockets before the next.
    private func step() {
        let (input, handle) = self.state.withLock { ($0.waiting.popFirst(), $0.handle) }
        if let input, let handle { handle(input) }
        let (isMore, isOver) = self.state.withLock { state in
            state.isScheduled = false
            return (state.schedules(), state.isOver)
        }
        if isMore { self.ask() }
        if isOver { self.end.settle(()) }
    }
}
