import EarshotWire
import NIOCore
import OrderedCollections

/// What is on its way to peers, or waits for them: sent on each connection until it is acknowledged.
extension NodeCore {
    // MARK: Going out

    /// Lets what else is sent just now go out in the same write.
    mutating func scheduleFlush(_ peer: PeerID) {
        guard self.traffic[peer]?.outbox.isFlushing == false, self.records[peer]?.isAttached == true else { return }
        self.traffic[peer]?.outbox.isFlushing = true
        self.emit(.flushSoon(peer))
    }

    mutating func flushOutbox(_ peer: PeerID) {
        self.traffic[peer]?.outbox.isFlushing = false
        guard let facts = self.facts(of: peer), facts.isAttached, let link = facts.link, let session = facts.session,
            // No copy of the outbox is held: changing it would then copy that.
            let batch = self.traffic[peer]?.outbox.takeUnsent()
        else { return }
        var frames: [Frame] = []
        frames.reserveCapacity(batch.entries.count)
        for (index, entry) in batch.entries.enumerated() {
            self.outgoing.update(entry.id) { $0.replace(.queued, by: .sent, at: peer) }
            guard let body = entry.body else { continue }
            frames.append(
                .message(
                    MessageFrame(
                        session: session, id: entry.id, mode: batch.isResumed && index == 0 ? .resumed : .reliable,
                        sequence: entry.sequence, sentAtMilliseconds: entry.sentAtMilliseconds, contentType: entry.contentType, body: body))
            )
        }
        if !frames.isEmpty { self.emit(.send(link, frames)) }
        guard !batch.missing.isEmpty, self.traffic[peer]?.outbox.isLoading == false else { return }
        self.traffic[peer]?.outbox.isLoading = true
        self.emit(.loadBodies(peer, batch.missing))
    }

    /// The bodies of messages that are next have been read, or could not be.
    mutating func bodiesLoaded(_ ids: [MessageID], for peer: PeerID, _ bodies: Result<[LoadedBody], EarshotError>) {
        self.traffic[peer]?.outbox.isLoading = false
        guard self.records[peer]?.isAttached == true else { return }
        switch bodies {
        case .success(let bodies):
            let found = OrderedDictionary(bodies.map { ($0.id, $0.body) }) { first, _ in first }
            for id in ids {
                if let body = found[id] {
                    self.traffic[peer]?.outbox.loaded(id, body)
                } else if self.traffic[peer]?.outbox.remove(id) == true {
                    self.settle(id, peer, .failed, EarshotError(.storage, "the message is not in the outbox any more"))
                }
            }
            self.flushOutbox(peer)
        case .failure(let error):
            self.log(Notice(.error, "cannot read the outbox", ["error": error]))
            self.scheduleRetry(peer)
        }
    }

    // MARK: Receipts

    /// What has become of messages of this side's, in a session with the peer.
    mutating func receiptsCame(_ receipts: [MessageReceipt], from peer: PeerID) {
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
        if !noted.isEmpty { self.noteKnown(noted, by: peer) }
        // A person reads there: there may be room again for what was refused.
        if hasRead, let pause = self.traffic[peer]?.resume(at: self.now.monotonic) { self.set(.outboxRetry(peer), after: pause) }
        self.scheduleFlush(peer)
    }

    private mutating func delivered(_ ids: inout [MessageID], to peer: PeerID) {
        guard !ids.isEmpty else { return }
        let acknowledged = self.traffic[peer]?.outbox.acknowledged(ids) ?? []
        let recipient = Message.Recipient(peerID: peer, status: .delivered)
        var decided: [MessageStatus] = []
        decided.reserveCapacity(ids.count)
        for (id, isAwaited) in zip(ids, acknowledged) {
            if !isAwaited {
                self.confirmedLate(id, peer)
            } else if self.outgoing[id]?.isQueued == true {
                self.settle(id, peer, .delivered, nil)
            } else {
                decided.append(MessageStatus(id: id, recipient: recipient))
            }
        }
        self.decide(decided)
        ids.removeAll(keepingCapacity: true)
    }

    private mutating func refused(_ id: MessageID, _ peer: PeerID, _ error: EarshotError) {
        guard let entry = self.traffic[peer]?.outbox.refused(id) else { return }
        guard entry.isQueued else { return self.settle(id, peer, .failed, error) }
        // Messages that a caller waits for fail: they may not overtake the queued one that was refused, and its retry may take long.
        for waiting in self.traffic[peer]?.outbox.waitingIDs ?? [] {
            guard self.traffic[peer]?.outbox.remove(waiting) == true else { continue }
            self.settle(waiting, peer, .failed, error)
        }
        self.outgoing.update(id) { $0.replace(.sent, by: .queued, at: peer) }
        self.scheduleRetry(peer)
    }

    private mutating func scheduleRetry(_ peer: PeerID) {
        if let pause = self.traffic[peer]?.retry() { self.set(.outboxRetry(peer), after: pause) }
    }

    mutating func retryOutbox(_ peer: PeerID) {
        self.traffic[peer]?.retryDue(at: self.now.monotonic)
        self.scheduleFlush(peer)
    }

    /// It was read there; whether the peer may be told at once that this is known.
    private mutating func wasRead(_ id: MessageID, _ peer: PeerID) -> Bool {
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
            self.decide([MessageStatus(id: id, recipient: read)])
            return true
        }
        // Said again while that is on its way to the disk: the answer comes from there.
        guard !message.reading.contains(peer) else { return false }
        self.outgoing.update(id) {
            $0.reading.insert(peer)
            $0.settling.insert(peer)
        }
        self.keep([.settle(id, read)], then: .read(id, peer))
        return false
    }

    mutating func note(_ ids: [MessageID], to peer: PeerID) {
        self.send(.messageReceipts(ids.map { MessageReceipt(id: $0, outcome: .noted) }), on: self.records[peer]?.connection)
    }

    /// The status is final, but it may be asked for.
    private mutating func confirmedLate(_ id: MessageID, _ peer: PeerID) {
        guard let message = self.outgoing[id], !message.confirmedLate.contains(peer),
            let index = message.recipients.firstIndex(where: { $0.peerID == peer && $0.status == .unconfirmed })
        else { return }
        let name = self.facts(of: peer)?.name ?? "the peer"
        self.outgoing.update(id) {
            $0.confirmedLate.insert(peer)
            $0.recipients[index].errorMessage = "\(name) has it, and confirmed that too late"
        }
        guard message.isQueued, let recipient = self.outgoing[id]?.recipients[index] else { return }
        self.keep([.settle(id, recipient)])
    }

    // MARK: Ends

    /// Fails what a peer has not got; of what is queued on disk where that ends too.
    mutating func failOutbox(of peer: PeerID, _ error: EarshotError, queuedToo: Bool) {
        for id in (queuedToo ? self.traffic[peer]?.outbox.ids : self.traffic[peer]?.outbox.unqueuedIDs) ?? [] {
            guard self.traffic[peer]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// The two sides do not agree on a connection, and dialling again would end the same way: callers that wait are told why. Queued messages
    /// wait on, and what has gone out before may have arrived.
    private mutating func failUnsent(to peer: PeerID, _ error: EarshotError) {
        for id in self.traffic[peer]?.outbox.waitingIDs ?? [] where self.outgoing[id]?.stands(.queued, at: peer) == true {
            guard self.traffic[peer]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// What a change of a peer means for its messages.
    mutating func messagesHear(_ change: PeerChange, of peer: PeerID) {
        switch change {
        case .connected: self.traffic[peer]?.connected()
        case .sessionReplaced: self.traffic[peer]?.sessionReplaced()
        case .attached:
            self.flushOutbox(peer)
            self.sendReceipts(to: peer)
        case .ended(let ending, let error):
            if ending == .session { self.unnotedReads.removeAll(of: peer) }
            if ending == .connection {
                self.traffic[peer]?.connectionLost()
                self.deadlines.cancel(.outboxRetry(peer))
            }
            if ending.fate(of: .messages) == .ends {
                self.failOutbox(of: peer, error, queuedToo: ending.fate(of: .queuedMessages) == .ends)
            }
        case .unreachable(let error): self.failUnsent(to: peer, error)
        case .withinReach: if self.traffic[peer]?.outbox.hasQueued == true { self.inviteForQueue(peer) }
        case .refusedConnection: break
        case .forgotten:
            self.failOutbox(of: peer, EarshotError(.notConnected, "nothing is known of the peer any more"), queuedToo: true)
            self.traffic.removeValue(forKey: peer)
            self.deadlines.cancel(.outboxRetry(peer))
        }
    }
}
