import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// The store's queue: changes in the order in which they were decided, bursts of messages in few transactions.
///
/// Whatever tells a peer or a caller that something is safe stands in a completion here.
extension Node {
    /// Queues one transaction; `then` runs on the node once it is on disk, or has failed.
    func persist(_ changes: [StoreChange], then: @escaping (Result<Void, EarshotError>) -> Void) {
        self.enqueue(.apply(changes, then: then))
    }

    /// The same for callers that wait.
    func persist(_ changes: [StoreChange]) async throws(EarshotError) {
        // Nothing runs the queue any more once the node has stopped.
        guard !self.isStopping else { throw Self.stopping }
        let result = await withCheckedContinuation { continuation in
            self.persist(changes) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    func enqueue(_ work: StoreWork) {
        guard !self.isStoreClosed else {
            if case .outbox(let keeping) = work { self.handle(.kept([keeping.id], Self.stopping)) }
            return work.fail(Self.stopping)
        }
        if work.maySettleRows { self.isRowBatchOpen = false }
        self.storeQueue.append(self.charged(work))
        guard !self.isStorePumpRunning, !self.isStopping else { return }
        self.isStorePumpRunning = true
        // It goes on with the work of all peers, so that none is charged for it.
        self.working(for: nil) { self.spawn { [weak self] in await self?.pumpStore() } }
    }

    private func pumpStore() async {
        while let batch = self.storeQueue.next() {
            switch batch {
            case .apply(let batch): await self.apply(batch)
            case .decide(let decision, let then): await self.apply(decision(), then)
            case .deliver(let batch): await self.deliver(batch)
            case .outbox(let batch): await self.change(batch)
            }
        }
        self.isStorePumpRunning = false
    }

    /// One transaction for all; where that fails, one for each, so that what does not fit costs the others nothing.
    private func change(_ batch: [StoreWork.Keeping]) async {
        do throws(EarshotError) {
            try await self.store.change(batch.flatMap(\.changes))
            return self.handle(.kept(batch.map(\.id), nil))
        } catch {
            guard batch.count > 1 else {
                self.logger.error("cannot keep what is queued", metadata: ["error": "\(error)"])
                return self.handle(.kept(batch.map(\.id), error))
            }
        }
        for entry in batch { await self.change([entry]) }
    }

    /// The same for decisions.
    private func apply(_ batch: [StoreWork.Transaction]) async {
        do throws(EarshotError) {
            try await self.store.apply(batch.flatMap(\.changes))
            for entry in batch { entry.then(.success(())) }
            return
        } catch {
            guard batch.count > 1 else {
                self.logger.error("cannot keep a decision", metadata: ["error": "\(error)"])
                for entry in batch { entry.then(.failure(error)) }
                return
            }
        }
        for entry in batch { await self.apply([entry]) }
    }

    /// What is left of the queue when the node stops: decisions are kept, unacknowledged messages will be sent again.
    func drainStore() async {
        while let batch = self.storeQueue.next() {
            switch batch {
            case .apply(let batch): await self.apply(batch)
            case .decide(let decision, let then): await self.apply(decision(), then)
            case .outbox(let batch): await self.change(batch)
            case .deliver: break
            }
        }
    }

    private func apply(
        _ decision: Result<StoreWork.Decision, EarshotError>, _ then: @escaping (Result<Void, EarshotError>) -> Void
    ) async {
        switch decision {
        case .success(let decision):
            let adopting: (Result<Void, EarshotError>) -> Void = { result in
                if case .success = result { decision.adopt() }
                then(result)
            }
            await self.apply([StoreWork.Transaction(changes: decision.changes, then: adopting)])
        case .failure(let error): then(.failure(error))
        }
    }

    /// One transaction and one fsync for all.
    private func deliver(_ batch: [StoreWork.Delivery]) async {
        var outcomes: ArraySlice<DeliveryOutcome>?
        do throws(EarshotError) {
            outcomes = try await self.store.deliver(batch.flatMap(\.messages), receivedAt: self.now)[...]
        } catch {
            self.logger.error("cannot keep messages", metadata: ["count": "\(batch.count)", "error": "\(error)"])
        }
        self.unreadMessages += outcomes?.count(where: \.isStored) ?? 0
        var reports: [DeliveryReport] = []
        reports.reserveCapacity(batch.count)
        for delivery in batch {
            let own = outcomes?.prefix(delivery.messages.count)
            outcomes?.removeFirst(delivery.messages.count)
            reports.append(DeliveryReport(of: delivery.connection.peer.id, delivery.messages.map(\.id), own.map { Array($0) }))
            delivery.connection.processed(delivery.weight)
        }
        self.handle(.delivered(reports))
    }

    /// Drops what has been read and is too old, and comes back to it.
    func pruneInbox() {
        self.pruning?.cancel()
        self.pruning = nil
        let limit = self.now.addingTimeInterval(-(self.configuration.inboxAge / .seconds(1)))
        self.spawn { [weak self, store, logger] in
            do throws(EarshotError) {
                try await store.prune(readBefore: limit)
            } catch {
                logger.error("cannot prune the inbox", metadata: ["error": "\(error)"])
            }
            await self?.schedulePruning(after: EarshotLimits.pruningInterval)
        }
    }

    func schedulePruning(after delay: Duration) {
        self.pruning?.cancel()
        self.pruning = self.schedule(.pruneInbox, after: delay)
    }
}
