import EarshotWaiting
import NIOCore
import Synchronization

/// The connection between a caller's body and the transfer that sends it.
///
/// One task reads a body, and only until the call with the body has returned. After that, the owner of the body's source (an HTTP
/// connection) may read it again, and two concurrent readers crash the process. The caller's own task therefore reads, in ``read(_:)``.
/// The transfer, which either side may end at any time, never touches the body and takes pieces from here. When one of the two ends, the
/// other one is woken.
///
/// The feed holds one piece, so that reading and sending overlap, and so that reading is never far ahead of the transfer.
final class BodyFeed: Sendable {
    private let machine = Mutex(BodyFeedStateMachine())
    /// Wakes the waiting reader and the waiting transfer together. Each checks the state again.
    private let changes = Changes()

    /// Reads the body until it ends or fails, or until the transfer is over. The body is not read after this returns. If the task is
    /// cancelled, reading stops and the transfer fails.
    @concurrent func read(_ body: any AsyncSequence<ByteBuffer, any Error> & Sendable) async {
        do {
            for try await piece in body {
                guard await self.put(piece) else { return }
            }
            // Some sequences end, without an error, when their reader is cancelled.
            try Task.checkCancellation()
            self.finish(nil)
        } catch let error as EarshotError {
            self.finish(error)
        } catch {
            self.finish(EarshotError(.cancelled, "the body was cut off", underlying: error))
        }
    }

    /// Waits for the next piece and returns it; `nil` at the body's end.
    /// - Throws: the error of the body; `cancelled` if the body was cut off, the transfer is over, or the task is cancelled.
    func next() async throws(EarshotError) -> ByteBuffer? {
        while true {
            switch self.change({ $0.take() }) {
            case .piece(let piece): return piece
            case .wait: guard await self.wait(while: { $0.isEmpty }) else { throw Self.cutOff }
            case .end: return nil
            case .fail(let error): throw error
            }
        }
    }

    /// Ends the feed when the transfer is over. The reader stops, and so does a task that waits for a piece.
    func close() { self.change { $0.close() } }

    /// Passes on a piece once there is room. Returns `false` if the piece is no longer wanted.
    private func put(_ piece: ByteBuffer) async -> Bool {
        while true {
            switch self.change({ $0.put(piece) }) {
            case .taken: return true
            case .stop: return false
            case .wait:
                await withTaskCancellationHandler {
                    _ = await self.wait { $0.isFull }
                } onCancel: {
                    self.finish(Self.cutOff)
                }
            }
        }
    }

    private func finish(_ error: EarshotError?) { self.change { $0.finish(error) } }

    @discardableResult
    private func change<Action>(_ event: (inout BodyFeedStateMachine) -> Action) -> Action {
        defer { self.changes.tell() }
        return self.machine.withLock { event(&$0) }
    }

    /// Waits for a change of the state while `condition` holds. Returns `false` if the task is cancelled.
    private func wait(while condition: (BodyFeedStateMachine) -> Bool) async -> Bool {
        let seen = self.changes.count
        guard self.machine.withLock({ condition($0) }) else { return true }
        return await self.changes.wait(after: seen)
    }

    private static var cutOff: EarshotError { EarshotError(.cancelled, "the body was cut off") }
}
