import NIOCore
import NIOPosix

/// The continuous clock, with event loops' timers: sleeping by the clock itself goes through libdispatch, which on Linux wakes the process up
/// once a second from its first use on, for as long as it lives. Like all timers of event loops, these stand still in suspend.
package struct TimerClock: Clock {
    package typealias Instant = ContinuousClock.Instant

    package init() {}

    package var now: Instant { .now }
    package var minimumResolution: Duration { .nanoseconds(1) }

    package func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let timer = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: TimeAmount(self.now.duration(to: deadline))) {}
        await withTaskCancellationHandler {
            try? await timer.futureResult.get()
        } onCancel: {
            timer.cancel()
        }
        try Task.checkCancellation()
    }
}
