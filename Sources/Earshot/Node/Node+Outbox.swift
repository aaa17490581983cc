import DequeModule
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// What is on its way to peers, or waits for them, and what becomes of it.
extension Node {
    // MARK: Going out

    /// Lets the callers that are queued on this actor add theirs first: a burst goes out as one write.
    func scheduleFlush(_ peer: PeerID) {
        guard self.traffic[peer]?.outbox.isFlushing == false, self.core.facts(of: peer)?.isAttached == true else { return }
        self.traffic[peer]?.outbox.isFlushing = true
        self.input.yield(.flush(peer))
    }

    func flushOutbox(_ peer: PeerID) {
        self.expireMessagesIfDue()
        self.traffic[peer]?.outbox.isFlushing = false
        // No copy of the outbox is held: changing it would then copy that.
        guard let (connection, session) = self.attachment(to: peer), let batch = self.traffic[peer]?.outbox.takeUnsent() else { return }
        var frames: [Frame] = []
        frames.reserveCapacity(batch.entries.count)
        for (index, entry) in batch.entries.enumerated() {
            self.markSent(entry.id, peer)
            guard let body = entry.body else { continue }
            frames.append(
                .message(
                    MessageFrame(
                        session: session, id: entry.id, mode: batch.isResumed && index == 0 ? .resumed : .reliable,
                        sequence: entry.sequence, sentAtMilliseconds: entry.sentAtMilliseconds, contentType: entry.contentType, body: body))
            )
        }
        if !frames.isEmpty { connection.send(frames) }
        if !batch.missing.isEmpty { self.load(batch.missing, for: peer) }
    }

    private func markSent(_ id: MessageID, _ peer: PeerID) {
        guard let position = self.outgoing.index(forKey: id),
            let index = self.outgoing.values[position].recipients.firstIndex(where: { $0.peerID == peer && $0.status == .queued })
        else { return }
        self.outgoing.values[position].recipients[index].status = .sent
    }

    /// Reads the bodies of queued messages that are next.
    private func load(_ ids: [MessageID], for peer: PeerID) {
        guard self.traffic[peer]?.outbox.isLoading == false else { return }
        self.traffic[peer]?.outbox.isLoading = true
        self.spawn { [weak self, store] in
            let result: Result<[MessageID: ByteBuffer], EarshotError>
            do throws(EarshotError) {
                result = .success(try await store.outboxBodies(ids))
            } catch {
                result = .failure(error)
            }
            await self?.loaded(ids, result, for: peer)
        }
    }

    private func loaded(_ ids: [MessageID], _ result: Result<[MessageID: ByteBuffer], EarshotError>, for peer: PeerID) {
        self.traffic[peer]?.outbox.isLoading = false
        guard self.attachment(to: peer) != nil else { return }
        switch result {
        case .success(let bodies):
            for id in ids {
                if let body = bodies[id] {
                    self.traffic[peer]?.outbox.loaded(id, body)
                } else if self.traffic[peer]?.outbox.remove(id) == true {
                    self.settle(id, peer, .failed, EarshotError(.storage, "the message is not in the outbox any more"))
                }
            }
            self.flushOutbox(peer)
        case .failure(let error):
            self.logger.error("cannot read the outbox", metadata: ["error": "\(error)"])
            self.scheduleRetry(peer)
        }
    }

    // MARK: Receipts

    func received(_ receipts: [MessageReceipt], from peer: PeerID) {
        var toNote: [MessageID] = []
        var noted: [MessageID] = []
        var delivered: [MessageID] = []
        var hasRead = false
        for receipt in receipts {
            // In their order, but as many together as there are.
            if receipt.outcome != .delivered { self.delivered(&delivered, to: peer) }
            switch receipt.outcome {
            case .delivered: delivered.append(receipt.id)
            case .read:
                hasRead = true
                _ = self.traffic[peer]?.outbox.acknowledged(receipt.id)
                if self.wasRead(receipt.id, peer) { toNote.append(receipt.id) }
            case .inboxFull:
                self.refused(receipt.id, peer, EarshotError(.inboxFull, "the receiver's inbox is full; try again later"))
            case .refused:
                self.refused(receipt.id, peer, EarshotError(.unavailable, "the receiver could not keep the message"))
            case .noted: noted.append(receipt.id)
            }
        }
        self.delivered(&delivered, to: peer)
        if !toNote.isEmpty { self.note(toNote, to: peer) }
        if !noted.isEmpty { self.keepNote(noted, by: peer) }
        if hasRead { self.resumeOutbox(peer) }
        self.scheduleFlush(peer)
    }

    /// A person reads there: there may be room again for what was refused. Tried once a second at most, whatever the peer says.
    private func resumeOutbox(_ peer: PeerID) {
        guard let traffic = self.traffic[peer], traffic.outbox.isPaused else { return }
        let now = self.transport.timers.now
        guard let due = traffic.outboxResumed.map({ $0 + EarshotLimits.resumeInterval }), now < due else {
            self.traffic[peer]?.outboxResumed = now
            self.traffic[peer]?.outbox.resume()
            return
        }
        guard !traffic.isResumingSoon else { return }
        self.traffic[peer]?.isResumingSoon = true
        traffic.outboxRetry?.cancel()
        self.traffic[peer]?.outboxRetry = self.schedule(.outbox(peer), after: due - now)
    }

    private func delivered(_ ids: inout [MessageID], to peer: PeerID) {
        guard !ids.isEmpty else { return }
        let acknowledged = self.traffic[peer]?.outbox.acknowledged(ids) ?? []
        let recipient = Message.Recipient(peerID: peer, status: .delivered)
        var decided: [(MessageID, Message.Recipient)] = []
        decided.reserveCapacity(ids.count)
        for (id, isAwaited) in zip(ids, acknowledged) {
            if !isAwaited {
                self.confirmedLate(id, peer)
            } else if self.outgoing[id]?.isQueued == true {
                self.settle(id, peer, .delivered, nil)
            } else {
                decided.append((id, recipient))
            }
        }
        self.decide(decided)
        ids.removeAll(keepingCapacity: true)
    }

    private func refused(_ id: MessageID, _ peer: PeerID, _ error: EarshotError) {
        guard let entry = self.traffic[peer]?.outbox.refused(id) else { return }
        guard entry.isQueued else {
            self.settle(id, peer, .failed, error)
            return
        }
        // What a caller waits for is not held up by what waits on disk, and may not overtake it.
        for waiting in self.traffic[peer]?.outbox.waitingIDs ?? [] {
            guard self.traffic[peer]?.outbox.remove(waiting) == true else { continue }
            self.settle(waiting, peer, .failed, error)
        }
        if let index = self.outgoing[id]?.recipients.firstIndex(where: { $0.peerID == peer && $0.status == .sent }) {
            self.outgoing[id]?.recipients[index].status = .queued
        }
        self.scheduleRetry(peer)
    }

    private func scheduleRetry(_ peer: PeerID) {
        guard let traffic = self.traffic[peer], traffic.outboxRetry == nil else { return }
        let delays = EarshotLimits.refusedDelays
        let delay = delays[max(0, min(traffic.outbox.refusals, delays.count) - 1)]
        self.traffic[peer]?.outboxRetry = self.schedule(.outbox(peer), after: delay)
    }

    func retryOutbox(_ peer: PeerID) {
        self.traffic[peer]?.outboxRetry = nil
        if self.traffic[peer]?.isResumingSoon == true {
            self.traffic[peer]?.isResumingSoon = false
            self.traffic[peer]?.outboxResumed = self.transport.timers.now
        }
        self.traffic[peer]?.outbox.resume()
        self.scheduleFlush(peer)
    }

    /// It was read there; whether the peer may be told at once that we know.
    private func wasRead(_ id: MessageID, _ peer: PeerID) -> Bool {
        guard let message = self.outgoing[id], let recipient = message.recipients.first(where: { $0.peerID == peer }) else { return true }
        switch recipient.status {
        case .read: return true
        case .unconfirmed, .failed:
            self.confirmedLate(id, peer)
            return true
        case .queued, .sent, .delivered: break
        }
        let read = Message.Recipient(peerID: peer, status: .read)
        guard message.isQueued else {
            self.decide([(id, read)])
            return true
        }
        // Said again while that is on its way to the disk: the answer comes from there.
        guard !message.reading.contains(peer) else { return false }
        self.outgoing[id]?.reading.insert(peer)
        self.outgoing[id]?.settling.insert(peer)
        self.enqueue(
            .outbox([.settle(id, read)]) { result in
                self.outgoing[id]?.reading.remove(peer)
                self.decide([(id, read)])
                if case .success = result { self.note([id], to: peer) }
            })
        return false
    }

    private func note(_ ids: [MessageID], to peer: PeerID) {
        self.connection(to: peer)?.send([.messageReceipts(ids.map { MessageReceipt(id: $0, outcome: .noted) })])
    }

    /// The status is final, but it may be asked for.
    private func confirmedLate(_ id: MessageID, _ peer: PeerID) {
        guard let message = self.outgoing[id], !message.confirmedLate.contains(peer),
            let index = message.recipients.firstIndex(where: { $0.peerID == peer && $0.status == .unconfirmed })
        else { return }
        self.outgoing[id]?.confirmedLate.insert(peer)
        self.outgoing[id]?.recipients[index].errorMessage =
            "\(self.core.facts(of: peer)?.name ?? "the peer") has it, and confirmed that too late"
        guard message.isQueued, let recipient = self.outgoing[id]?.recipients[index] else { return }
        self.enqueue(.outbox([.settle(id, recipient)]) { _ in })
    }

    // MARK: Outcomes

    /// Decides what became of a message at one recipient; of a queued one, once that is on disk.
    func settle(_ id: MessageID, _ peer: PeerID, _ status: Message.Status, _ error: EarshotError?) {
        guard let message = self.outgoing[id], !message.settling.contains(peer),
            message.recipients.contains(where: { $0.peerID == peer && !$0.status.isFinal })
        else { return }
        let recipient = Message.Recipient(peerID: peer, status: status, error: error?.code, errorMessage: error?.message)
        guard message.isQueued else {
            self.decide([(id, recipient)])
            return
        }
        self.outgoing[id]?.settling.insert(peer)
        // Where the disk has no room for it, it stands all the same: sent again after a restart it would be known for a repeat.
        self.enqueue(.outbox([.settle(id, recipient)]) { _ in self.decide([(id, recipient)]) })
    }

    private func decide(_ decisions: [(id: MessageID, recipient: Message.Recipient)]) {
        var events: [NodeEvent.Kind] = []
        events.reserveCapacity(decisions.count)
        for (id, recipient) in decisions {
            // Changed where it stands, so that nothing is copied.
            guard let position = self.outgoing.index(forKey: id), let isDecided = self.outgoing.values[position].decide(recipient) else {
                continue
            }
            events.append(.messageStatus(id, recipient))
            guard isDecided else { continue }
            let decided = self.outgoing.values[position]
            self.outgoing.values[position].waiters = []
            if decided.isQueued { self.queueUsage.remove(decided.cost) }
            self.keepFinished(decided)
            for waiter in decided.waiters { waiter.settle(.success(decided.result)) }
        }
        self.publish(events)
    }

    /// Finished messages stay for a while, for callers that ask for their statuses.
    func keepFinished(_ message: OutgoingMessage) {
        self.finishedOutgoing.append(message.id)
        self.finishedOutgoingBytes += message.cost
        while self.finishedOutgoing.count > EarshotLimits.outgoingHistory
            || self.finishedOutgoingBytes > EarshotLimits.outgoingHistoryBytes,
            self.finishedOutgoing.count > 1, let oldest = self.finishedOutgoing.popFirst()
        {
            guard let gone = self.outgoing.removeValue(forKey: oldest) else { continue }
            self.finishedOutgoingBytes -= gone.cost
            if gone.isQueued { self.enqueue(.outbox([.remove(oldest)]) { _ in }) }
        }
    }

    // MARK: Ends

    /// Fails what a peer has not got; of what is queued on disk where that ends too.
    func failOutbox(of peer: PeerID, _ error: EarshotError, queuedToo: Bool) {
        guard let outbox = self.traffic[peer]?.outbox, !outbox.isEmpty else { return }
        for id in queuedToo ? outbox.ids : outbox.unqueuedIDs {
            guard self.traffic[peer]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// The two sides do not agree on a connection, and dialling again would end the same way: callers that wait are told why. Queued messages
    /// wait on, and what has gone out before may have arrived.
    func failUnsent(to peer: PeerID, _ error: EarshotError) {
        for id in self.traffic[peer]?.outbox.waitingIDs ?? [] where self.isQueued(id, for: peer) {
            guard self.traffic[peer]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// Has `expireMessages` run at the deadline at the latest.
    func expireMessages(at deadline: MonotonicInstant) {
        if let next = self.messageExpiry {
            guard deadline < next.at else { return }
            next.timer.cancel()
        }
        self.messageExpiry = (deadline, self.schedule(.messages, after: EarshotLimits.look(at: deadline, from: self.transport.timers.now)))
    }

    /// Nothing goes out past its deadline: timers stand still while the machine is suspended, deadlines do not.
    func expireMessagesIfDue() {
        guard let expiry = self.messageExpiry, expiry.at <= self.transport.timers.now else { return }
        expiry.timer.cancel()
        self.expireMessages()
    }

    /// Tells the senders of what is past its deadline that it is unconfirmed; it is not sent again.
    func expireMessages() {
        self.messageExpiry = nil
        let now = self.transport.timers.now
        var next: MonotonicInstant?
        for message in self.outgoing.values where !message.isFinal {
            guard message.deadline <= now else {
                next = min(next ?? message.deadline, message.deadline)
                continue
            }
            for recipient in message.recipients where !recipient.status.isFinal {
                let name = self.core.facts(of: recipient.peerID)?.name ?? "the peer"
                let reason = self.core.failure(of: recipient.peerID).map { "; \($0.message)" } ?? ""
                _ = self.traffic[recipient.peerID]?.outbox.remove(message.id)
                self.settle(
                    message.id, recipient.peerID, .unconfirmed,
                    EarshotError(.unconfirmed, "\(name) has not confirmed the message in time; it may or may not have it\(reason)"))
                self.scheduleFlush(recipient.peerID)
            }
        }
        if let next { self.expireMessages(at: next) }
    }
}
