import NIOCore
import NIOPosix

/// The continuous clock, with the timers of event loops. Sleeping with the clock itself uses libdispatch, which on Linux wakes up the
/// process once a second after its first use. Like all timers of event loops, these do not run while the machine is suspended.
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
