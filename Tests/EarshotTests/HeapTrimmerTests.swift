import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// When free memory is given back after a flood.
@Suite struct HeapTrimmerTests {
    @Test func heapTrimDelay() {
        let (loop, trims) = (EmbeddedEventLoop(), Box(0))
        let trimmer = HeapTrimmer(on: loop) { trims.withLock { $0 += 1 } }
        let delay = TimeAmount(EarshotLimits.heapTrimDelay)
        trimmer.trimSoon()
        loop.advanceTime(by: delay - .nanoseconds(1))
        // Another flood meanwhile is done with at the same time.
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
