import NIOCore

/// Users' pings that the peer has not answered. Their number is bounded by the connection's state machine.
struct AwaitedPongs {
    private var waiting: [UInt64: (answer: EventLoopPromise<Int64>, sent: NIODeadline)] = [:]

    mutating func expect(_ value: UInt64, _ answer: EventLoopPromise<Int64>, now: NIODeadline) {
        self.waiting[value] = (answer, now)
    }

    mutating func came(_ value: UInt64, at now: NIODeadline) {
        guard let (answer, sent) = self.waiting.removeValue(forKey: value) else { return }
        answer.succeed((now - sent).nanoseconds)
    }

    /// Fails all pings when the connection is over.
    mutating func end() {
        for (answer, _) in self.waiting.values { answer.fail(ChannelError.ioOnClosedChannel) }
        self.waiting = [:]
    }
}
