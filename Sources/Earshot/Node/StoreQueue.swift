import DequeModule
import EarshotWire

/// What waits for the disk.
enum StoreWork {
    /// One transaction, and what is to happen after it.
    case apply([StoreOperation], then: (Result<Void, EarshotError>) -> Void)
    /// The same, but what it consists of is decided only when its turn comes.
    case decide(() -> Decision, then: (Result<Void, EarshotError>) -> Void)
    /// Messages for the inbox; those that wait together are committed together.
    case deliver(Delivery)
    /// Changes of the outbox; those that wait together are committed together.
    case outbox(Keeping)

    /// It will not be done: its caller is told why.
    func fail(_ error: EarshotError) {
        switch self {
        case .apply(_, let then), .decide(_, let then): then(.failure(error))
        // The one's sender has no receipt, and sends it again; and what depends on the other is the core's affair.
        case .deliver, .outbox: break
        }
    }

    /// What is written.
    struct Decision {
        let changes: [StoreOperation]
        /// Of work that has joined this one, until that is on disk.
        var charges: [Charge] = []
    }

    /// Messages of one read of one connection.
    struct Delivery {
        let messages: [InboxMessage]
        let connection: Connection
        let weight: Int
    }

    /// A change of the outbox that the core has asked for.
    struct Keeping {
        let id: KeepID
        let changes: [OutboxChange]
        /// What a peer is charged that has caused it, until it is done.
        var charge: Charge?
    }

    /// One `apply`.
    struct Transaction {
        let changes: [StoreOperation]
        let then: (Result<Void, EarshotError>) -> Void
    }
}

/// The order in which work goes to the disk: three lanes that take turns, each in the order in which it was queued.
///
/// What the lanes hold has nothing to do with each other: decisions about peers, sessions and transfers; messages for the inbox; the
/// outbox. So that no peer holds others up, what waits in a lane is committed together as far as it can be, and the senders of messages
/// take turns within theirs. How much one peer may have waiting is bounded by its ``PeerAccount``.
struct StoreQueue {
    /// What is committed at once.
    enum Batch {
        case apply([StoreWork.Transaction])
        case decide(() -> StoreWork.Decision, then: (Result<Void, EarshotError>) -> Void)
        case deliver([StoreWork.Delivery])
        case outbox([StoreWork.Keeping])

        var isOfMessages: Bool { if case .deliver = self { true } else { false } }
    }

    private enum Lane: CaseIterable {
        case decisions, deliveries, outbox
    }

    private var decisions: Deque<StoreWork> = []
    private var deliveries: [PeerID: Deque<StoreWork.Delivery>] = [:]
    /// How many messages they have.
    private var messages = 0
    /// Whose messages come next.
    private var senders: Deque<PeerID> = []
    private var outbox: Deque<StoreWork.Keeping> = []
    /// Whose turn comes next.
    private var lanes = Deque(Lane.allCases)
    /// How much work waits.
    private(set) var count = 0
    /// How much has been queued in all.
    private(set) var total = 0

    mutating func append(_ work: StoreWork) {
        self.count += 1
        self.total += 1
        switch work {
        case .apply, .decide: self.decisions.append(work)
        case .deliver(let delivery):
            let sender = delivery.connection.peer.id
            self.messages += delivery.messages.count
            if self.deliveries[sender, default: []].isEmpty { self.senders.append(sender) }
            self.deliveries[sender, default: []].append(delivery)
        case .outbox(let keeping): self.outbox.append(keeping)
        }
    }

    /// What is to be committed next.
    mutating func next() -> Batch? {
        for _ in 0..<self.lanes.count {
            guard let lane = self.lanes.popFirst() else { return nil }
            self.lanes.append(lane)
            let batch: Batch? =
                switch lane {
                case .decisions: self.nextDecisions()
                case .deliveries: self.nextDeliveries()
                case .outbox: self.nextOutbox()
                }
            if let batch { return batch }
        }
        return nil
    }

    private mutating func nextDecisions() -> Batch? {
        var batch: [StoreWork.Transaction] = []
        while batch.count < EarshotLimits.transactionsAtOnce, case .apply(let changes, let then)? = self.decisions.first {
            batch.append(StoreWork.Transaction(changes: changes, then: then))
            self.decisions.removeFirst()
        }
        guard batch.isEmpty else {
            self.count -= batch.count
            return .apply(batch)
        }
        guard case .decide(let decision, let then)? = self.decisions.popFirst() else { return nil }
        self.count -= 1
        return .decide(decision, then: then)
    }

    /// Whether so many messages wait, and nothing else, that they are worth a transaction right behind that of others.
    var hasDeliveriesToFollow: Bool {
        self.messages >= EarshotLimits.deliveriesToFollow && self.decisions.isEmpty && self.outbox.isEmpty
    }

    /// The messages that are to be committed next.
    mutating func nextDeliveries() -> Batch? {
        var batch: [StoreWork.Delivery] = []
        var (count, bytes) = (0, 0)
        while count < EarshotLimits.deliveryBatch, bytes < EarshotLimits.deliveryBatchBytes, let sender = self.senders.popFirst(),
            let delivery = self.deliveries[sender]?.popFirst()
        {
            if self.deliveries[sender]?.isEmpty == false {
                self.senders.append(sender)
            } else {
                self.deliveries[sender] = nil
            }
            batch.append(delivery)
            count += delivery.messages.count
            bytes += delivery.weight
        }
        self.messages -= count
        self.count -= batch.count
        return batch.isEmpty ? nil : .deliver(batch)
    }

    private mutating func nextOutbox() -> Batch? {
        let batch = Array(self.outbox.prefix(EarshotLimits.deliveryBatch))
        self.outbox.removeFirst(batch.count)
        self.count -= batch.count
        return batch.isEmpty ? nil : .outbox(batch)
    }
}
