import EarshotWire
import NIOCore
import OrderedCollections

/// Messages that are in flight to peers, or wait for them: they are sent on each new connection until they are acknowledged.
extension NodeCore {
    // MARK: Sending

    /// Schedules a flush, so that other messages sent at the same time share its write.
    mutating func scheduleFlush(_ conversation: Conversation) {
        guard self.traffic[conversation]?.outbox.isFlushing == false, self.carrier(of: conversation) != nil else { return }
        self.traffic[conversation]?.outbox.setFlushing(true)
        self.emit(.flushSoon(conversation))
    }

    mutating func flushOutbox(_ conversation: Conversation) {
        self.traffic[conversation]?.outbox.setFlushing(false)
        guard let carrier = self.carrier(of: conversation),
            // Holding a copy of the outbox here would make the change below copy it.
            let batch = self.traffic[conversation]?.outbox.takeUnsent()
        else { return }
        var frames: [Frame] = []
        frames.reserveCapacity(batch.entries.count)
        let takesReplies = self.takesReplies(conversation.peer)
        for (index, entry) in batch.entries.enumerated() {
            self.outgoing.update(entry.id) { $0.replace(.queued, by: .sent, at: conversation.peer) }
            guard let body = entry.body else { continue }
            frames.append(
                .message(
                    MessageFrame(
                        session: carrier.session, id: entry.id, mode: batch.isResumed && index == 0 ? .resumed : .reliable,
                        sequence: entry.sequence, sentAtMilliseconds: entry.sentAtMilliseconds,
                        inReplyTo: takesReplies ? entry.inReplyTo : nil, contentType: entry.contentType, body: body))
            )
        }
        if !frames.isEmpty { self.emit(.send(carrier.link, frames)) }
        guard !batch.missing.isEmpty, self.traffic[conversation]?.outbox.beginLoading() == true else { return }
        self.emit(.loadBodies(conversation, batch.missing))
    }

    /// Handles the bodies of the next messages after they were read, or could not be read.
    mutating func bodiesLoaded(_ ids: [MessageID], for conversation: Conversation, _ bodies: Result<[LoadedBody], EarshotError>) {
        self.traffic[conversation]?.outbox.endLoading()
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

    /// Returns the conversation in which a message was sent to a peer. Mutating although it changes nothing, because the compiler would
    /// otherwise copy the core.
    private mutating func conversation(of id: MessageID, with peer: PeerID) -> Conversation {
        Conversation(with: peer, in: self.groups.isEmpty ? nil : self.outgoing.group(of: id))
    }

    /// Handles a peer's receipts for messages of this side.
    mutating func receiptsCame(_ receipts: [MessageReceipt], from peer: PeerID) {
        var toNote: [MessageID] = []
        var noted: [MessageID] = []
        var delivered: [MessageID] = []
        var read: OrderedSet<Conversation> = []
        var heard: OrderedSet<Conversation> = []
        var current = Conversation(with: peer)
        for receipt in receipts {
            let conversation = self.conversation(of: receipt.id, with: peer)
            // Consecutive receipts of one kind are handled together. Their order is preserved.
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
            // A user reads there: the inbox may have room again for refused messages.
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
        // Messages whose callers wait fail: they may not overtake the refused queued message, and its retry may take long.
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

    /// Handles a read receipt. Returns whether the peer can be told at once that it was noted.
    mutating func wasRead(_ id: MessageID, _ peer: PeerID) -> Bool {
        guard let message = self.outgoing[id], let recipient = message.recipients.first(where: { $0.peerID == peer }) else { return true }
        switch recipient.status {
        // If the status is not on disk yet, the note is sent after the write.
        case .read: return !message.reading.contains(peer) && !self.keeping.isUnsettled(Unsettled(id: id, peer: peer))
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
        // The peer repeated the receipt during the write. The note is sent after the write.
        guard !message.reading.contains(peer) else { return false }
        // A `failed` or `unconfirmed` status may be in flight to the disk, and stays valid.
        let isLate = (message.settling[peer] ?? .delivered) != .delivered
        if !isLate { self.outgoing.update(id) { $0.settle(.read, at: peer) } }
        self.keepRead(id, read, isLate: isLate)
        return false
    }

    mutating func note(_ ids: [MessageID], to peer: PeerID) {
        self.send(.messageReceipts(ids.map { MessageReceipt(id: $0, outcome: .noted) }), on: self.records[peer]?.connection)
    }

    /// Notes a late confirmation in the final status, for callers that ask for it.
    mutating func confirmedLate(_ id: MessageID, _ peer: PeerID) {
        guard let message = self.outgoing[id], !message.confirmedLate.contains(peer),
            message.stands(.unconfirmed, at: peer)
        else { return }
        let name = self.facts(of: peer)?.name ?? "the peer"
        let recipient = self.outgoing.update(id) { $0.confirmLate(peer, "\(name) has it, and confirmed that too late") }
        if message.isQueued, let recipient = recipient ?? nil { self.keep([.settle(id, recipient)]) }
    }

    // MARK: Endings

    /// Fails the unacknowledged messages of a conversation, and with `queuedToo` also the queued ones.
    mutating func failOutbox(of conversation: Conversation, _ error: EarshotError, queuedToo: Bool) {
        let outbox = self.traffic[conversation]?.outbox
        for id in (queuedToo ? outbox?.ids : outbox?.unqueuedIDs) ?? [] {
            guard self.traffic[conversation]?.outbox.remove(id) == true else { continue }
            self.settle(id, conversation.peer, .failed, error)
        }
    }

    /// Fails the messages whose callers wait, after an incompatibility that another dial would not resolve. Queued messages wait on, and
    /// messages that have gone out before may have arrived.
    private mutating func failUnsent(in conversation: Conversation, _ error: EarshotError) {
        let peer = conversation.peer
        for id in self.traffic[conversation]?.outbox.waitingIDs ?? [] where self.outgoing[id]?.stands(.queued, at: peer) == true {
            guard self.traffic[conversation]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
    }

    /// Ends a conversation in a group that the two no longer share, with all its state.
    mutating func endConversation(_ conversation: Conversation, _ error: EarshotError) {
        self.failOutbox(of: conversation, error, queuedToo: true)
        _ = self.traffic.remove(conversation)
        self.deadlines.cancel(.outboxRetry(conversation))
    }

    /// Updates the messages of a peer after a change of the peer.
    mutating func messagesHear(_ change: PeerChange, of peer: PeerID) {
        let session = Conversation(with: peer)
        switch change {
        case .connected: for conversation in self.conversations(with: peer) { self.traffic[conversation]?.note(IncomingOrder()) }
        case .sessionReplaced: self.traffic[session]?.note(IncomingOrder())
        case .attached:
            self.flushOutbox(session)
            self.sendReceipts(to: peer)
        case .ended(let ending, let error):
            if ending == .session, self.records[peer]?.groups.isEmpty != false { self.readReceipts.removeAll(of: peer) }
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
