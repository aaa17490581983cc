import EarshotWire
import NIOCore
import OrderedCollections

/// What is on its way to peers, or waits for them: sent on each connection until it is acknowledged.
extension NodeCore {
    // MARK: Going out

    /// Lets what else is sent just now go out in the same write.
    mutating func scheduleFlush(_ conversation: Conversation) {
        guard self.traffic[conversation]?.outbox.isFlushing == false, self.carrier(of: conversation) != nil else { return }
        self.traffic[conversation]?.outbox.isFlushing = true
        self.emit(.flushSoon(conversation))
    }

    mutating func flushOutbox(_ conversation: Conversation) {
        self.traffic[conversation]?.outbox.isFlushing = false
        guard let carrier = self.carrier(of: conversation),
            // No copy of the outbox is held: changing it would then copy that.
            let batch = self.traffic[conversation]?.outbox.takeUnsent()
        else { return }
        var frames: [Frame] = []
        frames.reserveCapacity(batch.entries.count)
        for (index, entry) in batch.entries.enumerated() {
            self.outgoing.update(entry.id) { $0.replace(.queued, by: .sent, at: conversation.peer) }
            guard let body = entry.body else { continue }
            frames.append(
                .message(
                    MessageFrame(
                        session: carrier.session, id: entry.id, mode: batch.isResumed && index == 0 ? .resumed : .reliable,
                        sequence: entry.sequence, sentAtMilliseconds: entry.sentAtMilliseconds, contentType: entry.contentType, body: body))
            )
        }
        if !frames.isEmpty { self.emit(.send(carrier.link, frames)) }
        guard !batch.missing.isEmpty, self.traffic[conversation]?.outbox.isLoading == false else { return }
        self.traffic[conversation]?.outbox.isLoading = true
        self.emit(.loadBodies(conversation, batch.missing))
    }

    /// The bodies of messages that are next have been read, or could not be.
    mutating func bodiesLoaded(_ ids: [MessageID], for conversation: Conversation, _ bodies: Result<[LoadedBody], EarshotError>) {
        self.traffic[conversation]?.outbox.isLoading = false
        guard self.carrier(of: conversation) != nil else { return }
        switch bodies {
        case .success(let bodies):
            let found = OrderedDictionary(bodies.map { ($0.id, $0.body) }) { first, _ in first }
            for id in ids {
                if let body = found[id] {
                    self.traffic[conversation]?.outbox.loaded(id, body)
                } else if self.traffic[conversation]?.outbox.remove(id) == true {
                    self.settle(id, conversation.peer, .failed, EarshotError(.storage, "the message is not in the outbox any more"))
                }
            }
            self.flushOutbox(conversation)
        case .failure(let error):
            self.log(Notice(.error, "cannot read the outbox", ["error": error]))
            self.scheduleRetry(conversation)
        }
    }

    // MARK: Receipts

    /// In which conversation with a peer a message was sent. Mutating, though it changes nothing: else the compiler makes a copy of the core for it.
    private mutating func conversation(of id: MessageID, with peer: PeerID) -> Conversation {
        Conversation(with: peer, in: self.groups.isEmpty ? nil : self.outgoing.group(of: id))
    }

    /// What has become of messages of this side's, in conversations with the peer.
    mutating func receiptsCame(_ receipts: [MessageReceipt], from peer: PeerID) {
        var toNote: [MessageID] = []
        var noted: [MessageID] = []
        var delivered: [MessageID] = []
        var read: OrderedSet<Conversation> = []
        var heard: OrderedSet<Conversation> = []
        var current = Conversation(with: peer)
        for receipt in receipts {
            let conversation = self.conversation(of: receipt.id, with: peer)
            // In their order, but as many together as there are.
            if receipt.outcome != .delivered || conversation != current { self.delivered(&delivered, in: current) }
            current = conversation
            if heard.last != conversation { heard.append(conversation) }
            switch receipt.outcome {
            case .delivered: delivered.append(receipt.id)
            case .read:
                read.append(conversation)
                _ = self.traffic[conversation]?.outbox.acknowledged(receipt.id)
                if self.wasRead(receipt.id, peer) { toNote.append(receipt.id) }
            case .inboxFull:
                self.refused(receipt.id, in: conversation, EarshotError(.inboxFull, "the receiver's inbox is full; try again later"))
            case .refused:
                self.refused(receipt.id, in: conversation, EarshotError(.unavailable, "the receiver could not keep the message"))
            case .noted: noted.append(receipt.id)
            }
        }
        self.delivered(&delivered, in: current)
        if !toNote.isEmpty { self.note(toNote, to: peer) }
        if !noted.isEmpty { self.noteKnown(noted, by: peer) }
        for conversation in read {
            // A person reads there: there may be room again for what was refused.
            guard let pause = self.traffic[conversation]?.resume(at: self.now.monotonic) else { continue }
            self.set(.outboxRetry(conversation), after: pause)
        }
        for conversation in heard { self.scheduleFlush(conversation) }
    }

    private mutating func delivered(_ ids: inout [MessageID], in conversation: Conversation) {
        guard !ids.isEmpty else { return }
        let acknowledged = self.traffic[conversation]?.outbox.acknowledged(ids) ?? []
        let recipient = Message.Recipient(peerID: conversation.peer, status: .delivered)
        var decided: [MessageStatus] = []
        decided.reserveCapacity(ids.count)
        for (id, isAwaited) in zip(ids, acknowledged) {
            if !isAwaited {
                self.confirmedLate(id, conversation.peer)
            } else if self.outgoing.update(id, { $0.isQueued }) == true {
                self.settle(id, conversation.peer, .delivered, nil)
            } else {
                decided.append(MessageStatus(id: id, recipient: recipient))
            }
        }
        self.decide(decided)
        ids.removeAll(keepingCapacity: true)
    }

    private mutating func refused(_ id: MessageID, in conversation: Conversation, _ error: EarshotError) {
        guard let entry = self.traffic[conversation]?.outbox.refused(id) else { return }
        guard entry.isQueued else { return self.settle(id, conversation.peer, .failed, error) }
        // Messages that a caller waits for fail: they may not overtake the queued one that was refused, and its retry may take long.
        for waiting in self.traffic[conversation]?.outbox.waitingIDs ?? [] {
            guard self.traffic[conversation]?.outbox.remove(waiting) == true else { continue }
            self.settle(waiting, conversation.peer, .failed, error)
        }
        self.outgoing.update(id) { $0.replace(.sent, by: .queued, at: conversation.peer) }
        self.scheduleRetry(conversation)
    }

    private mutating func scheduleRetry(_ conversation: Conversation) {
        if let pause = self.traffic[conversation]?.retry() { self.set(.outboxRetry(conversation), after: pause) }
    }

    mutating func retryOutbox(_ conversation: Conversation) {
        self.traffic[conversation]?.retryDue(at: self.now.monotonic)
        self.scheduleFlush(conversation)
    }

    /// It was read there; whether the peer may be told at once that this is known.
    mutating func wasRead(_ id: MessageID, _ peer: PeerID) -> Bool {
        guard let message = self.outgoing[id], let recipient = message.recipients.first(where: { $0.peerID == peer }) else { return true }
        switch recipient.status {
        // What is not on disk yet is answered from there.
        case .read: return !message.reading.contains(peer) && !self.unsettled.contains(Unsettled(id: id, peer: peer))
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
        // That it has failed, or is unconfirmed, may be on its way there too, and stands.
        let isLate = (message.settling[peer] ?? .delivered) != .delivered
        if !isLate { self.outgoing.update(id) { $0.settling[peer] = .read } }
        self.keepRead(id, read, isLate: isLate)
        return false
    }

    mutating func note(_ ids: [MessageID], to peer: PeerID) {
        self.send(.messageReceipts(ids.map { MessageReceipt(id: $0, outcome: .noted) }), on: self.records[peer]?.connection)
    }

    /// The status is final, but it may be asked for.
    mutating func confirmedLate(_ id: MessageID, _ peer: PeerID) {
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

    /// Fails what a peer has not got in a conversation; of what is queued on disk where that ends too.
    mutating func failOutbox(of conversation: Conversation, _ error: EarshotError, queuedToo: Bool) {
        let outbox = self.traffic[conversation]?.outbox
        for id in (queuedToo ? outbox?.ids : outbox?.unqueuedIDs) ?? [] {
            guard self.traffic[conversation]?.outbox.remove(id) == true else { continue }
            self.settle(id, conversation.peer, .failed, error)
        }
    }

    /// The two sides do not agree on a connection, and dialling again would end the same way: callers that wait are told why. Queued messages
    /// wait on, and what has gone out before may have arrived.
    private mutating func failUnsent(in conversation: Conversation, _ error: EarshotError) {
        let peer = conversation.peer
        for id in self.traffic[conversation]?.outbox.waitingIDs ?? [] where self.outgoing[id]?.stands(.queued, at: peer) == true {
            guard self.traffic[conversation]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// A conversation is over, with all that is remembered of it: neither side is a member of the group together any more.
    mutating func endConversation(_ conversation: Conversation, _ error: EarshotError) {
        self.failOutbox(of: conversation, error, queuedToo: true)
        self.traffic.removeValue(forKey: conversation)
        self.deadlines.cancel(.outboxRetry(conversation))
    }

    /// What a change of a peer means for its messages.
    mutating func messagesHear(_ change: PeerChange, of peer: PeerID) {
        let session = Conversation(with: peer)
        switch change {
        case .connected: for conversation in self.conversations(with: peer) { self.traffic[conversation]?.connected() }
        case .sessionReplaced: self.traffic[session]?.sessionReplaced()
        case .attached:
            self.flushOutbox(session)
            self.sendReceipts(to: peer)
        case .ended(let ending, let error):
            if ending == .session, self.records[peer]?.groups.isEmpty != false { self.unnotedReads.removeAll(of: peer) }
            if ending == .connection {
                for conversation in self.conversations(with: peer) {
                    self.traffic[conversation]?.connectionLost()
                    self.deadlines.cancel(.outboxRetry(conversation))
                }
            }
            if ending.fate(of: .messages) == .ends {
                self.failOutbox(of: session, error, queuedToo: ending.fate(of: .queuedMessages) == .ends)
            }
        case .unreachable(let error): for conversation in self.conversations(with: peer) { self.failUnsent(in: conversation, error) }
        case .withinReach: if self.traffic[session]?.outbox.hasQueued == true { self.inviteForQueue(peer) }
        case .refusedConnection: break
        case .forgotten:
            for conversation in self.conversations(with: peer) {
                self.endConversation(conversation, EarshotError(.notConnected, "nothing is known of the peer any more"))
            }
        }
    }
}
