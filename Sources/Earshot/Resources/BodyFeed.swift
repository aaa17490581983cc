import NIOCore
import Synchronization

/// A body on its way from the caller that brings it to the transfer that sends it.
///
/// A body is read by one task, and only for as long as the call that brought it has not returned: what brings it (an HTTP connection) may be
/// read by its owner again after that, and two readers at once end the process. So the caller's own task reads, in ``read(_:)``, and the
/// transfer, which may end at any time and by any side's word, never touches the body: it takes from here. Whichever of the two ends, the
/// other one is woken.
///
/// One piece lies between the two, so that reading and sending overlap, and no more of the body is read than the transfer keeps up with.
final class BodyFeed: Sendable {
    private struct State {
        var machine = BodyFeedStateMachine()
        /// The reader or the transfer, or both; woken together, and each looks again.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Reads the body to its end, to its failure, or until the transfer is over, whichever comes first; then it is not read any more.
    /// A task that is cancelled reads no more, and has the transfer fail.
    @concurrent func read(_ body: any AsyncSequence<ByteBuffer, any Error> & Sendable) async {
        do {
            for try await piece in body {
                guard await self.put(piece) else { return }
            }
            // Some sequences end where their reader is cancelled.
            try Task.checkCancellation()
            self.finish(nil)
        } catch let error as EarshotError {
            self.finish(error)
        } catch {
            self.finish(EarshotError(.cancelled, "the body was cut off", underlying: error))
        }
    }

    /// The next piece; `nil` at the body's end.
    /// - Throws: what the body failed with; `cancelled` where it was cut off, or the transfer is over.
    func next() async throws(EarshotError) -> ByteBuffer? {
        while true {
            switch self.change({ $0.take() }) {
            case .piece(let piece): return piece
            case .wait: await self.wait { $0.isEmpty }
            case .end: return nil
            case .fail(let error): throw error
            }
        }
    }

    /// The transfer is over: the reader stops, and so does a task that waits for a piece.
    func close() { self.change { $0.close() } }

    /// Hands a piece over, once there is room; `false` where it is not wanted any more.
    private func put(_ piece: ByteBuffer) async -> Bool {
        while true {
            switch self.change({ $0.put(piece) }) {
            case .taken: return true
            case .stop: return false
            case .wait:
                await withTaskCancellationHandler {
                    await self.wait { $0.isFull }
                } onCancel: {
                    self.finish(EarshotError(.cancelled, "the body was cut off"))
                }
            }
        }
    }

    private func finish(_ error: EarshotError?) { self.change { $0.finish(error) } }

    @discardableResult
    private func change<Action>(_ event: (inout BodyFeedStateMachine) -> Action) -> Action {
        let (action, waiters) = self.state.withLock { state in
            let action = event(&state.machine)
            defer { state.waiters = [] }
            return (action, state.waiters)
        }
        for waiter in waiters { waiter.resume() }
        return action
    }

    /// Waits until something has changed; not at all where there is nothing to wait for any more.
    private func wait(while condition: @escaping @Sendable (BodyFeedStateMachine) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isWaiting = self.state.withLock { state in
                guard condition(state.machine) else { return false }
                state.waiters.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }
}
