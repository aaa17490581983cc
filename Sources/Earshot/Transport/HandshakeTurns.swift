import DequeModule
package import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Turns of TLS handshakes on one event loop, so that computations for strangers do not delay other connections for long.
///
/// A typical piece of a handshake takes a millisecond or two and runs immediately. After a longer piece, other work has
/// ``EarshotLimits/handshakePause`` times as long before the next piece of any handshake. Waiting pieces run one at a time, in the order
/// of arrival. Their number is bounded by that of unproven connections and dials.
///
/// Used only on its loop. The lock allows passing it to connections' handlers from any thread.
package final class HandshakeTurns: Sendable {
    private struct State {
        var waiting: Deque<@Sendable () -> Void> = []
        /// The earliest time of the next piece.
        var next = NIODeadline.uptimeNanoseconds(0)
        var isScheduled = false
    }

    private let loop: any EventLoop
    private let spent: @Sendable () -> TimeAmount
    private let state = Mutex(State())

    /// Creates the turns. `spent` returns the processor time of the loop's thread so far. Time spent waiting for a processor is not
    /// charged to a handshake.
    package init(on loop: any EventLoop, spent: @escaping @Sendable () -> TimeAmount = HandshakeTurns.processorTime) {
        self.loop = loop
        self.spent = spent
    }

    /// Returns the calling thread's processor time (clock_gettime(2)).
    package static func processorTime() -> TimeAmount {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// Runs a piece of work, immediately or when its turn comes.
    package func take(_ work: @escaping @Sendable () -> Void) {
        let now = self.loop.now
        let isDue = self.state.withLock { state in
            if state.waiting.isEmpty, state.next <= now { return true }
            state.waiting.append(work)
            return false
        }
        if isDue { self.run(work) }
        self.scheduleNext()
    }

    private func run(_ work: () -> Void) {
        let before = self.spent()
        work()
        let took = self.spent() - before
        guard took > TimeAmount(EarshotLimits.handshakeTurn) else { return }
        let next = self.loop.now + took * EarshotLimits.handshakePause
        self.state.withLock { $0.next = next }
    }

    private func scheduleNext() {
        let time: NIODeadline? = self.state.withLock { state in
            guard !state.isScheduled, !state.waiting.isEmpty else { return nil }
            state.isScheduled = true
            return state.next
        }
        guard let time else { return }
        self.loop.scheduleTask(deadline: time) {
            let work = self.state.withLock { state in
                state.isScheduled = false
                return state.waiting.popFirst()
            }
            if let work { self.run(work) }
            // Schedules the next piece in another iteration of the loop, after other input.
            self.scheduleNext()
        }
    }
}
