import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// The store's queue: changes in the order of the decisions, and bursts of messages in few transactions.
///
/// Only a completion here tells a peer or a caller that something is on disk.
extension Node {
    /// Queues one transaction. `then` runs on the node when the transaction is on disk or has failed.
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
        // Deferred, because the caller of `enqueue` has not finished.
        self.eventLoop.execute {
            self.assumeIsolated { node in
                node.isStoreAsked = false
                node.pumpStore()
            }
        }
    }

    /// Whether the store is writing a batch of the queue.
    var isStoreBusy: Bool { self.storeBatches > 0 }

    /// Whether the store can take another batch. A large batch of messages may follow one that is still being written. The node then sends
    /// the receipts of the first while the second is being written. Every other batch waits until the store is idle, because its decisions
    /// depend on the state on disk.
    private var mayCommit: Bool {
        !self.isStoreBusy || self.isStoreDelivering && self.storeBatches == 1 && self.storeQueue.hasDeliveriesToFollow
    }

    /// Commits the pending work batch by batch. A batch makes one trip to the store's thread and back.
    func pumpStore() {
        guard self.isRunning else { return }
        while self.mayCommit, let batch = self.isStoreBusy ? self.storeQueue.nextDeliveries() : self.storeQueue.next() {
            self.storeBatches += 1
            self.isStoreDelivering = batch.isOfMessages
            // The batch holds work of all peers, so no peer is charged for starting it.
            if !self.working(for: nil, { self.begin(batch) }) { self.storeBatches -= 1 }
        }
        guard !self.isStoreBusy else { return }
        self.storeDrained?.resume()
        self.storeDrained = nil
    }

    /// Starts writing a batch. Returns `false` if there was nothing to write.
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

    /// Runs work on the store's thread, and passes its outcome to `then` on the node's loop.
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

    /// Writes a batch in one transaction. If that fails, writes one transaction per entry, so that a bad entry does not affect the others.
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

    /// Writes the rest of the queue when the node stops. Decisions are persisted. Messages that are not acknowledged will be sent again.
    func drainStore() async {
        await withCheckedContinuation { continuation in
            self.storeDrained = continuation
            self.pumpStore()
        }
        self.isStoreClosed = true
    }

    /// Stores messages in one transaction with one fsync.
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
            let (sender, ids) = (delivery.sender, delivery.messages.map(\.id))
            var own = (outcomes?.prefix(ids.count)).map { Array($0) }
            outcomes?.removeFirst(ids.count)
            if self.isEphemeral { own = own.map { self.held($0, ids, from: sender) } }
            switch delivery.origin {
            case .connection(let connection):
                reports.append(DeliveryReport(of: sender, on: connection.id, ids, own))
                connection.processed(delivery.weight)
            case .offer(let id, _): self.handle(.device(.delivered(id, own?.first)))
            }
        }
        if !reports.isEmpty { self.handle(.delivered(reports)) }
    }

    /// Marks stored messages of an ephemeral node as held: the program owns them only when it takes them.
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

    /// Acknowledges the messages that an ephemeral node has held for its program, when the program has taken them out of the inbox.
    func take(_ messages: some Sequence<Message>) {
        guard self.isEphemeral else { return }
        var taken: OrderedDictionary<PeerID, [MessageID]> = [:]
        for message in messages { taken[message.senderID, default: []].append(message.id) }
        for (sender, ids) in taken { self.take(ids, of: sender) }
    }

    /// Acknowledges the held messages of one sender.
    func take(_ ids: [MessageID], of sender: PeerID) {
        guard var untaken = self.untaken.removeValue(forKey: sender) else { return }
        let taken = ids.filter { untaken.remove($0) != nil }
        if !untaken.isEmpty { self.untaken[sender] = untaken }
        if !taken.isEmpty { self.handle(.taken(taken, of: sender)) }
    }

    /// Deletes read messages that are too old, and schedules the next run.
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
