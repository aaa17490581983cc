import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The time at which free memory is returned to the system after a flood.
@Suite struct HeapTrimmerTests {
    @Test func heapTrimDelay() {
        let (loop, trims) = (EmbeddedEventLoop(), Box(0))
        let trimmer = HeapTrimmer(on: loop) { trims.withLock { $0 += 1 } }
        let delay = TimeAmount(EarshotLimits.heapTrimDelay)
        trimmer.trimSoon()
        loop.advanceTime(by: delay - .nanoseconds(1))
        // Another flood in the meantime is covered by the same trim.
        trimmer.trimSoon()
        #expect(trims.value == 0)
        loop.advanceTime(by: .nanoseconds(1))
        #expect(trims.value == 1)
        loop.advanceTime(by: delay)
        #expect(trims.value == 1)
        trimmer.trimSoon()
        loop.advanceTime(by: delay)
        #expect(trims.value == 2, "the next flood, too")
    }
}
