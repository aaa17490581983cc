import DequeModule
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// What waits for the disk, in order.
enum StoreWork {
    /// One transaction, and what is to happen after it.
    case apply([StoreChange], then: (Result<Void, EarshotError>) -> Void)
    /// A message for the inbox; those that wait together are committed together.
    case deliver(InboxMessage, from: Connection, weight: Int)
    /// Changes of the outbox; those that wait together are committed together.
    case outbox([OutboxChange], then: (Result<Void, EarshotError>) -> Void)
}

/// The store's queue: changes in the order in which they were decided, bursts of messages in few transactions.
///
/// Whatever tells somebody that something is safe stands in a completion here.
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
        self.storeQueue.append(work)
        guard !self.isStorePumpRunning, !self.isStopping else { return }
        self.isStorePumpRunning = true
        self.spawn { [weak self] in await self?.pumpStore() }
    }

    private func pumpStore() async {
        while let work = self.storeQueue.popFirst() {
            switch work {
            case .apply(let changes, let then): await self.apply(changes, then)
            case .deliver(let message, let connection, let weight):
                var batch = [(message, connection, weight)]
                while batch.count < EarshotLimits.deliveryBatch, case .deliver(let next, let from, let weight)? = self.storeQueue.first {
                    batch.append((next, from, weight))
                    self.storeQueue.removeFirst()
                }
                await self.deliver(batch)
            case .outbox(let changes, let then):
                var batch = [(changes, then)]
                while batch.count < EarshotLimits.deliveryBatch, case .outbox(let more, let then)? = self.storeQueue.first {
                    batch.append((more, then))
                    self.storeQueue.removeFirst()
                }
                await self.change(batch)
            }
        }
        self.isStorePumpRunning = false
    }

    /// Queues changes of the outbox, for callers that wait until they are on disk.
    func change(_ changes: [OutboxChange]) async throws(EarshotError) {
        guard !self.isStopping else { throw Self.stopping }
        let result = await withCheckedContinuation { continuation in
            self.enqueue(.outbox(changes) { continuation.resume(returning: $0) })
        }
        try result.get()
    }

    /// One transaction for all; where that fails, one for each, so that what does not fit costs the others nothing.
    private func change(_ batch: [(changes: [OutboxChange], then: (Result<Void, EarshotError>) -> Void)]) async {
        do throws(EarshotError) {
            try await self.store.change(batch.flatMap(\.changes))
            for entry in batch { entry.then(.success(())) }
            return
        } catch {
            guard batch.count > 1 else {
                self.logger.error("cannot keep what is queued", metadata: ["error": "\(error)"])
                for entry in batch { entry.then(.failure(error)) }
                return
            }
        }
        for entry in batch { await self.change([entry]) }
    }

    /// What is left of the queue when the node stops: decisions are kept, unacknowledged messages will be sent again.
    func drainStore() async {
        while let work = self.storeQueue.popFirst() {
            switch work {
            case .apply(let changes, let then): await self.apply(changes, then)
            case .outbox(let changes, let then): await self.change([(changes, then)])
            case .deliver: break
            }
        }
    }

    private func apply(_ changes: [StoreChange], _ then: (Result<Void, EarshotError>) -> Void) async {
        do throws(EarshotError) {
            try await self.store.apply(changes)
            then(.success(()))
        } catch {
            self.logger.error("cannot keep a decision", metadata: ["error": "\(error)"])
            then(.failure(error))
        }
    }

    private func deliver(_ batch: [(message: InboxMessage, connection: Connection, weight: Int)]) async {
        let outcomes: [DeliveryOutcome]?
        do throws(EarshotError) {
            outcomes = try await self.store.deliver(batch.map(\.message), receivedAt: Date())
        } catch {
            self.logger.error("cannot keep messages", metadata: ["count": "\(batch.count)", "error": "\(error)"])
            outcomes = nil
        }
        var receipts: [PeerID: [MessageReceipt]] = [:]
        for (index, entry) in batch.enumerated() {
            let outcome: MessageReceipt.Outcome
            switch outcomes?[index] {
            case .stored(let message)?:
                self.unreadMessages += 1
                self.tell(.messageReceived(message), cost: message.body.readableBytes + 512)
                outcome = .delivered
            case .duplicate?: outcome = .delivered
            case .refused(.inboxFull)?: outcome = .inboxFull
            case .refused(.storage)?, nil: outcome = .refused
            }
            receipts[entry.message.senderID, default: []].append(MessageReceipt(id: entry.message.id, outcome: outcome))
            entry.connection.processed(entry.weight)
        }
        for (peer, receipts) in receipts {
            guard let connection = self.records[peer]?.connection else { continue }
            connection.send(
                stride(from: 0, to: receipts.count, by: WireLimits.receiptsPerFrame).map {
                    .messageReceipts(Array(receipts[$0..<min($0 + WireLimits.receiptsPerFrame, receipts.count)]))
                })
        }
    }

    /// Drops what has been read and is too old, and comes back to it.
    func pruneInbox() {
        self.pruning?.cancel()
        let limit = Date().addingTimeInterval(-(self.configuration.inboxAge / .seconds(1)))
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
