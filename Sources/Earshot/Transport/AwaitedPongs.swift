import NIOCore

/// The pings of persons that the peer has not answered: as many at most as the connection's machine lets out.
struct AwaitedPongs {
    private var waiting: [UInt64: (answer: EventLoopPromise<Int64>, sent: NIODeadline)] = [:]

    mutating func expect(_ value: UInt64, _ answer: EventLoopPromise<Int64>, now: NIODeadline) {
        self.waiting[value] = (answer, now)
    }

    mutating func came(_ value: UInt64, at now: NIODeadline) {
        guard let (answer, sent) = self.waiting.removeValue(forKey: value) else { return }
        answer.succeed((now - sent).nanoseconds)
    }

    /// The connection is over.
    mutating func end() {
        for (answer, _) in self.waiting.values { answer.fail(ChannelError.ioOnClosedChannel) }
        self.waiting = [:]
    }
}
