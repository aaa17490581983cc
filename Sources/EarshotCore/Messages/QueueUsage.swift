/// The usage of the outbox on disk. Each waiting message counts once, for any number of recipients.
package struct QueueUsage: Sendable, Equatable {
    package private(set) var count = 0
    package private(set) var bytes = 0

    package init() {}

    /// Whether another message of that cost fits.
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
