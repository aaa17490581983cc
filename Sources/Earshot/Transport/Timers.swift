import EarshotCore
package import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Schedules deadlines, and provides the clock for them.
package struct Timers: Sendable {
    private enum Clock: Sendable {
        /// The system's clock, which continues while the machine is suspended.
        case system
        /// The event loop's clock, plus a simulated time in suspend.
        case loop(suspended: @Sendable () -> Duration)
    }

    private let eventLoop: any EventLoop
    private let clock: Clock

    /// Creates timers for tests. The test moves the time of the loop. The time in `suspended` also passes on the clock, but not for
    /// timers.
    package init(on eventLoop: any EventLoop, suspended: @escaping @Sendable () -> Duration = { .zero }) {
        self.init(eventLoop, .loop(suspended: suspended))
    }

    private init(_ eventLoop: any EventLoop, _ clock: Clock) {
        self.eventLoop = eventLoop
        self.clock = clock
    }

    /// Returns the timers of a daemon: the system's clock, and timers on one of the loops, which do not run while the machine is
    /// suspended.
    package static func system(of group: any EventLoopGroup) -> Timers { Timers(group.next(), .system) }

    /// The current time for deadlines and pauses.
    package var now: MonotonicInstant {
        switch self.clock {
        case .system: Self.sinceBoot()
        case .loop(let suspended): MonotonicInstant(nanoseconds: Int64(clamping: self.eventLoop.now.uptimeNanoseconds)) + suspended()
        }
    }

    /// Returns CLOCK_BOOTTIME, which includes time in suspend (clock_gettime(2)).
    static func sinceBoot() -> MonotonicInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Runs `action` at `deadline`, or immediately if it has passed.
    @discardableResult
    package func schedule(at deadline: MonotonicInstant, _ action: @escaping @Sendable () -> Void) -> Scheduled<Void> {
        guard case .loop(let suspended) = self.clock else {
            return self.eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - self.now)), action)
        }
        // Uses the instant instead of the delay. A test may move the time meanwhile, and would not move it again for a late timer.
        let due = NIODeadline.uptimeNanoseconds(UInt64(clamping: (deadline - suspended()).nanoseconds))
        let scheduled = self.eventLoop.scheduleTask(deadline: max(due, self.eventLoop.now), action)
        // Due timers run only when the loop has something else to execute.
        self.eventLoop.execute {}
        return scheduled
    }
}
