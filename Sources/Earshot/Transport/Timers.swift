import EarshotCore
package import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Schedules what comes due, and tells the time by which it is decided whether it has.
package struct Timers: Sendable {
    private enum Clock: Sendable {
        /// The system's, which runs on while the machine is suspended.
        case system
        /// The event loop's own, and the time that is to have passed in suspend.
        case loop(suspended: @Sendable () -> Duration)
    }

    private let eventLoop: any EventLoop
    private let clock: Clock

    /// For tests: time is this loop's, and passes as they move it. What they say that the machine was suspended passes by the clock too, while
    /// timers stand still.
    package init(on eventLoop: any EventLoop, suspended: @escaping @Sendable () -> Duration = { .zero }) {
        self.init(eventLoop, .loop(suspended: suspended))
    }

    private init(_ eventLoop: any EventLoop, _ clock: Clock) {
        self.eventLoop = eventLoop
        self.clock = clock
    }

    /// Those of a daemon: the system's clock, and timers on one of these loops, which stand still while the machine is suspended.
    package static func system(of group: any EventLoopGroup) -> Timers { Timers(group.next(), .system) }

    /// The time by which deadlines and pauses are told.
    package var now: MonotonicInstant {
        switch self.clock {
        case .system: Self.sinceBoot()
        case .loop(let suspended): MonotonicInstant(nanoseconds: Int64(clamping: self.eventLoop.now.uptimeNanoseconds)) + suspended()
        }
    }

    /// CLOCK_BOOTTIME, suspended time included (clock_gettime(2)).
    private static func sinceBoot() -> MonotonicInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Runs `action` at `deadline`, or at once where that has passed.
    @discardableResult
    package func schedule(at deadline: MonotonicInstant, _ action: @escaping @Sendable () -> Void) -> Scheduled<Void> {
        guard case .loop(let suspended) = self.clock else {
            return self.eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - self.now)), action)
        }
        // By the instant, not by the delay: a test may move the time meanwhile, and nobody would move it again for what is late then.
        let due = NIODeadline.uptimeNanoseconds(UInt64(clamping: (deadline - suspended()).nanoseconds))
        let scheduled = self.eventLoop.scheduleTask(deadline: max(due, self.eventLoop.now), action)
        // What is due runs only when the loop is asked for something.
        self.eventLoop.execute {}
        return scheduled
    }
}
