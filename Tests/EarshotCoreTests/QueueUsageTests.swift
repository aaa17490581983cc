import Testing

@testable import EarshotCore

@Suite struct QueueUsageTests {
    @Test func anOutboxHoldsItsLimitOfMessages() {
        var usage = QueueUsage()
        for _ in 1..<EarshotLimits.outboxMessages { usage.add(1) }
        #expect(usage.hasRoom(for: 1))
        usage.add(1)
        #expect(!usage.hasRoom(for: 1))
        usage.remove(1)
        #expect(usage.hasRoom(for: 1))
    }

    @Test func anOutboxHoldsItsLimitOfBytes() {
        var usage = QueueUsage()
        usage.add(EarshotLimits.outboxBytes - 1000)
        #expect(usage.hasRoom(for: 1000))
        #expect(!usage.hasRoom(for: 1001))
        usage.add(1001)
        #expect(!usage.hasRoom(for: 1))
        #expect(!QueueUsage().hasRoom(for: EarshotLimits.outboxBytes + 1))
    }
}
