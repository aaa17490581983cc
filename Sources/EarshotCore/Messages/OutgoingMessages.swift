import DequeModule
import EarshotWire

/// The messages that this machine sends, and sent messages whose outcome it still knows.
struct OutgoingMessages: Sendable {
    /// The consequences of an outcome.
    struct Change {
        /// The waiting callers, if the message has become final at every recipient.
        var waiters: [MessagePlace] = []
        var result: SentMessage?
        /// Queued messages that were evicted from the history: their rows can be removed.
        var forgotten: [MessageID] = []
    }

    private var messages: [MessageID: OutgoingMessage] = [:]
    /// The deadlines of the messages that are not final, so that a search for due messages need not visit the thousand that are.
    private var deadlines: [MessageID: MonotonicInstant] = [:]
    /// The messages with final statuses, oldest first: kept for a while, for callers that ask for them.
    private var finished: Deque<MessageID> = []
    private var finishedBytes = 0
    /// The unreliable messages whose ids were made here.
    private var unreliable = SentUnreliable()
    /// The sequence number of the last message to any peer.
    private var lastSequence: UInt64 = 0
    /// The next deadline that is checked.
    private var nextCheck: MonotonicInstant?
    /// The usage of the outbox on disk.
    private(set) var queue = QueueUsage()

    subscript(_ id: MessageID) -> OutgoingMessage? { self.messages[id] }

    /// Returns the group to which a message was sent, if any.
    func group(of id: MessageID) -> GroupID? { self.messages[id]?.group }

    /// Returns a message. Unlike the subscript, the search includes unreliable messages, and takes longer.
    func find(_ id: MessageID) -> OutgoingMessage? { self.messages[id] ?? self.unreliable[id] }

    /// Every message except unreliable ones.
    var all: [OutgoingMessage] {
        self.messages.values.sorted { ($0.id.high, $0.id.low) < ($1.id.high, $1.id.low) }  // order does not show: no two have the same id
    }

    /// Returns the next sequence number. The numbers rise across restarts too, as long as the clock does. Only the order within a connection
    /// matters.
    mutating func nextSequence(at wall: WallTime) -> UInt64 {
        let clock = UInt64(clamping: max(0, min(wall.milliseconds, WireLimits.sentAtMilliseconds.upperBound)) * 1000)
        self.lastSequence = max(self.lastSequence + 1, clock)
        return self.lastSequence
    }

    /// Schedules a check of the deadlines. Returns `false` if one is scheduled that is not later.
    mutating func scheduleCheck(at deadline: MonotonicInstant) -> Bool {
        if let next = self.nextCheck, next <= deadline { return false }
        self.nextCheck = deadline
        return true
    }

    /// Returns the messages whose deadline has passed, the earliest first, and the next deadline. This is the check that was scheduled.
    mutating func due(at now: MonotonicInstant) -> (due: [OutgoingMessage], next: MonotonicInstant?) {
        self.nextCheck = nil
        var (due, next): ([OutgoingMessage], MonotonicInstant?) = ([], nil)
        for (id, deadline) in self.deadlines {  // order does not show: sorted below
            if deadline > now { next = min(next ?? deadline, deadline) } else if let message = self.messages[id] { due.append(message) }
        }
        return (due.sorted { ($0.deadline, $0.id.high, $0.id.low) < ($1.deadline, $1.id.high, $1.id.low) }, next)
    }

    /// Adds a message. If it is final at once, it joins the history. Returns the queued messages that were evicted for it.
    mutating func insert(_ message: OutgoingMessage) -> [MessageID] {
        self.messages[message.id] = message
        guard !message.isFinal else { return self.finish(message.id, cost: message.cost) }
        self.deadlines[message.id] = message.deadline
        if message.isQueued { self.queue.add(message.cost) }
        return []
    }

    /// Adds an unreliable message whose id was made here.
    mutating func insertUnreliable(_ message: OutgoingMessage) { self.unreliable.append(message) }

    /// Removes a queued message that could not be written.
    mutating func withdraw(_ id: MessageID) {
        guard let message = self.messages.removeValue(forKey: id) else { return }
        self.deadlines[id] = nil
        self.queue.remove(message.cost)
    }

    /// Changes a message in place. Returns `nil` if the message is not here.
    @discardableResult
    mutating func update<Result>(_ id: MessageID, _ change: (inout OutgoingMessage) -> Result) -> Result? {
        guard let position = self.messages.index(forKey: id) else { return nil }
        return change(&self.messages.values[position])  // order does not show: that one alone
    }

    /// Sets the status of a message at one recipient. Returns `nil` if nothing changes.
    mutating func decide(_ id: MessageID, _ recipient: Message.Recipient) -> Change? {
        var change = Change()
        // Changed in place after a single lookup, because this runs for every message.
        let decided = self.update(id) { message -> (isFinal: Bool, isQueued: Bool, cost: Int)? in
            guard let isFinal = message.decide(recipient) else { return nil }
            if isFinal {
                change.result = message.result
                change.waiters = message.takeWaiters()
            }
            return (isFinal, message.isQueued, message.cost)
        }
        guard let (isFinal, isQueued, cost) = decided ?? nil else { return nil }
        guard isFinal else { return change }
        self.deadlines[id] = nil
        if isQueued { self.queue.remove(cost) }
        change.forgotten = self.finish(id, cost: cost)
        return change
    }

    /// Adds a message to the history, for callers that ask for its status. Returns the queued messages that were evicted for it.
    private mutating func finish(_ id: MessageID, cost: Int) -> [MessageID] {
        self.finished.append(id)
        self.finishedBytes += cost
        var forgotten: [MessageID] = []
        while self.finished.count > EarshotLimits.outgoingHistory || self.finishedBytes > EarshotLimits.outgoingHistoryBytes,
            self.finished.count > 1, let oldest = self.finished.popFirst()
        {
            guard let gone = self.messages.removeValue(forKey: oldest) else { continue }
            self.finishedBytes -= gone.cost
            if gone.isQueued { forgotten.append(oldest) }
        }
        return forgotten
    }

    /// Removes a finished message that starts again under its id.
    mutating func forget(_ message: OutgoingMessage) {
        self.finished.removeAll { $0 == message.id }
        self.finishedBytes -= message.cost
        self.messages[message.id] = nil
    }
}
