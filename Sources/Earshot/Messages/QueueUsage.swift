/// How full the outbox on disk is: messages that wait, each counted once, however many recipients it has.
struct QueueUsage: Equatable {
    private(set) var count = 0
    private(set) var bytes = 0

    /// Whether one more of that cost fits.
    func hasRoom(for cost: Int) -> Bool {
        self.count < EarshotLimits.outboxMessages && cost <= EarshotLimits.outboxBytes - min(self.bytes, EarshotLimits.outboxBytes)
    }

    mutating func add(_ cost: Int) {
        self.count += 1
        self.bytes += cost
    }

    mutating func remove(_ cost: Int) {
        self.count -= 1
        self.bytes -= cost
    }
}
