/// How full the outbox on disk is: messages that wait, each counted once, however many recipients it has.
package struct QueueUsage: Sendable, Equatable {
    package private(set) var count = 0
    package private(set) var bytes = 0

    package init() {}

    /// Whether one more of that cost fits.
    package func hasRoom(for cost: Int) -> Bool {
        self.count < EarshotLimits.outboxMessages && cost <= EarshotLimits.outboxBytes - min(self.bytes, EarshotLimits.outboxBytes)
    }

    package mutating func add(_ cost: Int) {
        self.count += 1
        self.bytes += cost
    }

    package mutating func remove(_ cost: Int) {
        self.count -= 1
        self.bytes -= cost
    }
}
