import DequeModule
import EarshotWire

/// Work that waits for the store.
enum StoreWork {
    /// One transaction, and its completion.
    case apply([StoreOperation], then: (Result<Void, EarshotError>) -> Void)
    /// One transaction whose changes are decided when its turn comes.
    case decide(() -> Decision, then: (Result<Void, EarshotError>) -> Void)
    /// Messages for the inbox. Waiting ones are committed together.
    case deliver(Delivery)
    /// Changes of the outbox. Waiting ones are committed together.
    case outbox(Keeping)

    /// Reports to the caller that the work will not be done.
    func fail(_ error: EarshotError) {
        switch self {
        case .apply(_, let then), .decide(_, let then): then(.failure(error))
        // The sender of messages gets no receipt and sends them again. The core handles a failed change of the outbox.
        case .deliver, .outbox: break
        }
    }

    /// The changes of one transaction, once they are decided.
    struct Decision {
        let changes: [StoreOperation]
        /// Charges of work that has joined this one, held until it is on disk.
        var charges: [Charge] = []
    }

    /// Messages of one read of one connection.
    struct Delivery {
        let messages: [InboxMessage]
        let origin: Origin
        let weight: Int

        /// The place to which the outcome is reported.
        enum Origin {
            case connection(Connection)
            /// The message of an accepted offer of a LocalSend device.
            case offer(InvitationID, of: PeerID)
        }

        var sender: PeerID {
            switch self.origin {
            case .connection(let connection): connection.peer.id
            case .offer(_, let device): device
            }
        }
    }

    /// A change of the outbox that the core has asked for.
    struct Keeping {
        let id: KeepID
        let changes: [OutboxChange]
        /// The charge of the peer that caused the change, held until the change is done.
        var charge: Charge?
    }

    /// One `apply`, queued together with others.
    struct Transaction {
        let changes: [StoreOperation]
        let then: (Result<Void, EarshotError>) -> Void
    }
}

/// The order of the store's work: three lanes that take turns, each in the order of its queue.
///
/// The lanes are independent of each other: decisions about peers, sessions and transfers; messages for the inbox; and the outbox. So that
/// no peer delays others, waiting work of a lane is committed together as far as possible, and the senders of messages take turns within
/// their lane. The ``PeerAccount`` of a peer bounds its waiting work.
struct StoreQueue {
    /// Work that is committed together.
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
    /// The number of messages in `deliveries`.
    private var messages = 0
    /// The senders of waiting messages, in the order of their turns.
    private var senders: Deque<PeerID> = []
    private var outbox: Deque<StoreWork.Keeping> = []
    /// The lanes, in the order of their turns.
    private var lanes = Deque(Lane.allCases)
    /// The amount of waiting work.
    private(set) var count = 0
    /// The amount of work queued in total.
    private(set) var total = 0

    mutating func append(_ work: StoreWork) {
        self.count += 1
        self.total += 1
        switch work {
        case .apply, .decide: self.decisions.append(work)
        case .deliver(let delivery):
            let sender = delivery.sender
            self.messages += delivery.messages.count
            if self.deliveries[sender, default: []].isEmpty { self.senders.append(sender) }
            self.deliveries[sender, default: []].append(delivery)
        case .outbox(let keeping): self.outbox.append(keeping)
        }
    }

    /// Removes and returns the next batch to commit.
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

    /// Whether only messages wait, and enough of them to start another transaction right behind a running one.
    var hasDeliveriesToFollow: Bool {
        self.messages >= EarshotLimits.deliveriesToFollow && self.decisions.isEmpty && self.outbox.isEmpty
    }

    /// Removes and returns the next batch of messages.
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
