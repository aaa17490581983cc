import DequeModule
import EarshotWire

/// The messages that this machine sends, and those whose outcome it still knows.
struct OutgoingMessages: Sendable {
    /// What has changed when an outcome was taken.
    struct Change {
        /// Callers that wait for it, where it is final at every recipient now.
        var waiters: [MessagePlace] = []
        var result: SentMessage?
        /// Queued messages that nobody can ask for any more: their rows may go.
        var forgotten: [MessageID] = []
    }

    private var messages: [MessageID: OutgoingMessage] = [:]
    /// Of those that are not final: to look for what is due is not to walk the thousand that are.
    private var deadlines: [MessageID: MonotonicInstant] = [:]
    /// Those with their final statuses, oldest first: kept for a while, to be asked for.
    private var finished: Deque<MessageID> = []
    private var finishedBytes = 0
    /// Unreliable ones under ids that were made here.
    private var unreliable = SentUnreliable()
    /// What waits in the outbox on disk.
    private(set) var queue = QueueUsage()

    subscript(_ id: MessageID) -> OutgoingMessage? { self.messages[id] }

    /// The group that it was sent to, if any.
    func group(of id: MessageID) -> GroupID? { self.messages[id]?.group }

    /// The same, and unreliable ones too, which takes longer.
    func find(_ id: MessageID) -> OutgoingMessage? { self.messages[id] ?? self.unreliable[id] }

    /// Every message but unreliable ones.
    var all: [OutgoingMessage] {
        self.messages.values.sorted { ($0.id.high, $0.id.low) < ($1.id.high, $1.id.low) }  // order does not show: no two have the same id
    }

    /// Those whose time is over, the earliest first, and when the next one's is.
    func due(at now: MonotonicInstant) -> (due: [OutgoingMessage], next: MonotonicInstant?) {
        var (due, next): ([OutgoingMessage], MonotonicInstant?) = ([], nil)
        for (id, deadline) in self.deadlines {  // order does not show: sorted below
            if deadline > now { next = min(next ?? deadline, deadline) } else if let message = self.messages[id] { due.append(message) }
        }
        return (due.sorted { ($0.deadline, $0.id.high, $0.id.low) < ($1.deadline, $1.id.high, $1.id.low) }, next)
    }

    /// Takes a new one up; one that is final at once is kept to be asked for. Gives the queued ones that had to go for it.
    mutating func insert(_ message: OutgoingMessage) -> [MessageID] {
        self.messages[message.id] = message
        guard !message.isFinal else { return self.finish(message.id, cost: message.cost) }
        self.deadlines[message.id] = message.deadline
        if message.isQueued { self.queue.add(message.cost) }
        return []
    }

    /// The same for an unreliable one under an id that was made here.
    mutating func insertUnreliable(_ message: OutgoingMessage) { self.unreliable.append(message) }

    /// A queued one could not be put on disk.
    mutating func withdraw(_ id: MessageID) {
        guard let message = self.messages.removeValue(forKey: id) else { return }
        self.deadlines[id] = nil
        self.queue.remove(message.cost)
    }

    /// Changes one where it stands; `nil` where it is not there.
    @discardableResult
    mutating func update<Result>(_ id: MessageID, _ change: (inout OutgoingMessage) -> Result) -> Result? {
        guard let position = self.messages.index(forKey: id) else { return nil }
        return change(&self.messages.values[position])  // order does not show: that one alone
    }

    /// Takes what became of a message at one recipient; `nil` where that changes nothing.
    mutating func decide(_ id: MessageID, _ recipient: Message.Recipient) -> Change? {
        var change = Change()
        // Where it stands, and looked for once: it is done for each message.
        let decided = self.update(id) { message -> (isFinal: Bool, isQueued: Bool, cost: Int)? in
            guard let isFinal = message.decide(recipient) else { return nil }
            if isFinal {
                change.result = message.result
                swap(&change.waiters, &message.waiters)
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

    /// Keeps one for callers that ask for its status; gives the queued ones that had to go for it.
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

    /// A finished one begins again under its id.
    mutating func forget(_ message: OutgoingMessage) {
        self.finished.removeAll { $0 == message.id }
        self.finishedBytes -= message.cost
        self.messages[message.id] = nil
    }
}
