import DequeModule
package import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The turns that TLS handshakes take on one event loop, so that what strangers make TLS compute holds no other connection up for long.
///
/// An ordinary piece of a handshake takes a millisecond or two and runs at once. After one that took longer the loop has
/// ``EarshotLimits/handshakePause`` times as long for everything else before the next piece of any handshake; those that wait go one by one, the
/// first comer first. There are no more of them than unproven connections and dials.
///
/// Used on its loop alone; the lock is there so that connections' handlers can be handed it from anywhere.
package final class HandshakeTurns: Sendable {
    private struct State {
        var waiting: Deque<@Sendable () -> Void> = []
        /// When the next piece may run.
        var next = NIODeadline.uptimeNanoseconds(0)
        var isScheduled = false
    }

    private let loop: any EventLoop
    private let spent: @Sendable () -> TimeAmount
    private let state = Mutex(State())

    /// `spent` is what the loop's thread has computed so far: waiting for a processor is not charged to a handshake.
    package init(on loop: any EventLoop, spent: @escaping @Sendable () -> TimeAmount = HandshakeTurns.processorTime) {
        self.loop = loop
        self.spent = spent
    }

    /// The calling thread's processor time (clock_gettime(2)).
    package static func processorTime() -> TimeAmount {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// Does a piece of work, at once or when its turn has come.
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
            // Another time round the loop, after what else has come in.
            self.scheduleNext()
        }
    }
}
