import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// The store's queue: changes in the order in which they were decided, bursts of messages in few transactions.
///
/// A peer or a caller is told that something is safe in a completion here, and nowhere else.
extension Node {
    /// Queues one transaction; `then` runs on the node once it is on disk, or has failed.
    func persist(_ changes: [StoreOperation], then: @escaping (Result<Void, EarshotError>) -> Void) {
        self.enqueue(.apply(changes, then: then))
    }

    func enqueue(_ work: StoreWork) {
        guard !self.isStoreClosed else {
            if case .outbox(let keeping) = work { self.handle(.kept([keeping.id], Self.stopping)) }
            return work.fail(Self.stopping)
        }
        if work.maySettleRows { self.isRowBatchOpen = false }
        self.storeQueue.append(self.charged(work))
        guard self.mayCommit, !self.isStoreAsked else { return }
        self.isStoreAsked = true
        // Not at once: the caller that queues it has not finished.
        self.eventLoop.execute {
            self.assumeIsolated { node in
                node.isStoreAsked = false
                node.pumpStore()
            }
        }
    }

    /// Whether the disk has something of the queue.
    var isStoreBusy: Bool { self.storeBatches > 0 }

    /// Whether the disk can be given more. Messages that come by the hundred follow the ones that it has: what was committed is told, receipts
    /// and all, in the time in which the next are committed. All else is decided by what is on disk.
    private var mayCommit: Bool {
        !self.isStoreBusy || self.isStoreDelivering && self.storeBatches == 1 && self.storeQueue.hasDeliveriesToFollow
    }

    /// Has what waits committed, batch by batch: to the store's thread and back is all the way that one takes.
    func pumpStore() {
        guard self.isRunning else { return }
        while self.mayCommit, let batch = self.isStoreBusy ? self.storeQueue.nextDeliveries() : self.storeQueue.next() {
            self.storeBatches += 1
            self.isStoreDelivering = batch.isOfMessages
            // It goes on with the work of all peers, so that none is charged for it.
            if !self.working(for: nil, { self.begin(batch) }) { self.storeBatches -= 1 }
        }
        guard !self.isStoreBusy else { return }
        self.storeDrained?.resume()
        self.storeDrained = nil
    }

    /// Whether the disk has something of it now.
    private func begin(_ batch: StoreQueue.Batch) -> Bool {
        let done = {
            self.storeBatches -= 1
            self.pumpStore()
        }
        switch batch {
        case .apply(let batch): self.apply(batch, then: done)
        case .decide(let decision, let then): self.apply(decision(), then, done: done)
        case .deliver(let batch): return self.deliver(batch, then: done)
        case .outbox(let batch):
            self.keep(
                batch, \.changes, "cannot keep what is queued", by: { store, changes throws(EarshotError) in try store.change(changes) },
                tell: { self.handle(.kept($0.map(\.id), $1.error)) }, then: done)
        }
        return true
    }

    /// Has the store do something on its thread, and goes on with the outcome here.
    private func commit<Outcome: Sendable>(
        _ work: @escaping @Sendable (isolated Store) throws(EarshotError) -> Outcome,
        then: @escaping (Result<Outcome, EarshotError>) -> Void
    ) {
        let here = NIOLoopBound(then, eventLoop: self.eventLoop)
        let eventLoop = self.eventLoop
        self.store.perform(work) { outcome in
            eventLoop.execute { self.assumeIsolated { $0.working(for: nil) { here.value(outcome) } } }
        }
    }

    /// One transaction for all; where that fails, one for each, so that what does not fit costs the others nothing.
    private func keep<Entry, Change: Sendable>(
        _ batch: [Entry], _ changes: @escaping (Entry) -> [Change], _ complaint: String,
        by write: @escaping @Sendable (isolated Store, [Change]) throws(EarshotError) -> Void,
        tell: @escaping ([Entry], Result<Void, EarshotError>) -> Void, then done: @escaping () -> Void
    ) {
        let all = batch.flatMap(changes)
        self.commit({ store throws(EarshotError) in try write(store, all) }) { result in
            if case .failure(let error) = result {
                guard batch.count == 1 else { return self.keepEach(batch[...], changes, complaint, by: write, tell: tell, then: done) }
                self.logger.error("\(complaint)", metadata: ["error": "\(error)"])
            }
            tell(batch, result)
            done()
        }
    }

    private func keepEach<Entry, Change: Sendable>(
        _ rest: ArraySlice<Entry>, _ changes: @escaping (Entry) -> [Change], _ complaint: String,
        by write: @escaping @Sendable (isolated Store, [Change]) throws(EarshotError) -> Void,
        tell: @escaping ([Entry], Result<Void, EarshotError>) -> Void, then done: @escaping () -> Void
    ) {
        guard let first = rest.first else { return done() }
        self.keep([first], changes, complaint, by: write, tell: tell) {
            self.keepEach(rest.dropFirst(), changes, complaint, by: write, tell: tell, then: done)
        }
    }

    private func apply(_ batch: [StoreWork.Transaction], then done: @escaping () -> Void) {
        self.keep(
            batch, \.changes, "cannot keep a decision", by: { store, changes throws(EarshotError) in try store.apply(changes) },
            tell: { entries, result in for entry in entries { entry.then(result) } }, then: done)
    }

    private func apply(
        _ decision: StoreWork.Decision, _ then: @escaping (Result<Void, EarshotError>) -> Void, done: @escaping () -> Void
    ) {
        let holding: (Result<Void, EarshotError>) -> Void = { result in
            withExtendedLifetime(decision.charges) { then(result) }
        }
        self.apply([StoreWork.Transaction(changes: decision.changes, then: holding)], then: done)
    }

    /// What is left of the queue when the node stops: decisions are kept, unacknowledged messages will be sent again.
    func drainStore() async {
        await withCheckedContinuation { continuation in
            self.storeDrained = continuation
            self.pumpStore()
        }
        self.isStoreClosed = true
    }

    /// One transaction and one fsync for all.
    private func deliver(_ batch: [StoreWork.Delivery], then done: @escaping () -> Void) -> Bool {
        guard !self.isStopping else { return false }
        let (messages, now) = (batch.flatMap(\.messages), self.now)
        self.commit({ store throws(EarshotError) in try store.deliver(messages, receivedAt: now) }) { result in
            if case .failure(let error) = result {
                self.logger.error("cannot keep messages", metadata: ["count": "\(batch.count)", "error": "\(error)"])
            }
            self.delivered(batch, try? result.get())
            done()
        }
        return true
    }

    private func delivered(_ batch: [StoreWork.Delivery], _ outcomes: [DeliveryOutcome]?) {
        var outcomes = outcomes.map { $0[...] }
        self.unreadMessages += outcomes?.count(where: \.isStored) ?? 0
        var reports: [DeliveryReport] = []
        reports.reserveCapacity(batch.count)
        for delivery in batch {
            let (sender, ids) = (delivery.connection.peer.id, delivery.messages.map(\.id))
            var own = (outcomes?.prefix(ids.count)).map { Array($0) }
            outcomes?.removeFirst(ids.count)
            if self.isEphemeral { own = own.map { self.held($0, ids, from: sender) } }
            reports.append(DeliveryReport(of: sender, on: delivery.connection.id, ids, own))
            delivery.connection.processed(delivery.weight)
        }
        self.handle(.delivered(reports))
    }

    /// What is stored in memory is the program's once that takes it, and not before.
    private func held(_ outcomes: [DeliveryOutcome], _ ids: [MessageID], from sender: PeerID) -> [DeliveryOutcome] {
        zip(outcomes, ids).map { outcome, id in
            switch outcome {
            case .stored(let message):
                self.untaken[sender, default: []].insert(id)
                return .held(message)
            case .duplicate where self.untaken[sender]?.contains(id) == true: return .heldAlready
            case .duplicate, .refused, .held, .heldAlready: return outcome
            }
        }
    }

    /// The program has received messages of the inbox: those that an ephemeral node held for it are acknowledged.
    func take(_ messages: some Sequence<Message>) {
        guard self.isEphemeral else { return }
        var taken: OrderedDictionary<PeerID, [MessageID]> = [:]
        for message in messages { taken[message.senderID, default: []].append(message.id) }
        for (sender, ids) in taken { self.take(ids, of: sender) }
    }

    /// The same of one sender's.
    func take(_ ids: [MessageID], of sender: PeerID) {
        guard var untaken = self.untaken.removeValue(forKey: sender) else { return }
        let taken = ids.filter { untaken.remove($0) != nil }
        if !untaken.isEmpty { self.untaken[sender] = untaken }
        if !taken.isEmpty { self.handle(.taken(taken, of: sender)) }
    }

    /// Drops what has been read and is too old, and comes back to it.
    func pruneInbox() {
        self.pruning?.cancel()
        self.pruning = nil
        let running = self.runningTime
        let limit = running + (.zero - self.configuration.inboxAge)
        let isDue = self.runningClock.isNoteDue(at: running)
        self.spawn { [weak self, store, logger] in
            do throws(EarshotError) {
                if isDue { try await store.noteRunningTime(running) }
                try await store.prune(readBefore: limit.date, now: running.date)
            } catch {
                logger.error("cannot prune the inbox", metadata: ["error": "\(error)"])
            }
            await self?.schedulePruning(after: EarshotLimits.pruningInterval)
        }
    }

    func schedulePruning(after delay: Duration) {
        self.pruning?.cancel()
        self.pruning = self.schedule(.pruneInbox, at: self.transport.timers.now + delay)
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { return error }
        return nil
    }
}
