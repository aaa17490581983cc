package import NIOCore

/// Schedules what comes due; tests put one in whose time they move.
package struct Timers: Sendable {
    private let eventLoop: any EventLoop

    package init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// The time of these timers.
    package var now: NIODeadline { self.eventLoop.now }

    @discardableResult
    package func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> Scheduled<Void> {
        self.eventLoop.scheduleTask(in: TimeAmount(delay), action)
    }
}
