package import EarshotWire
import OrderedCollections

/// The outcomes of sent messages: reported to their callers, stored for queued messages, and kept for later questions.
extension NodeCore {
    /// Sets the status of a message at one recipient. For a queued message, the status takes effect when it was written.
    mutating func settle(_ id: MessageID, _ peer: PeerID, _ status: Message.Status, _ error: EarshotError?) {
        guard let message = self.outgoing[id], message.settling[peer] == nil,
            message.recipients.contains(where: { $0.peerID == peer && !$0.status.isFinal })
        else { return }
        let recipient = Message.Recipient(peerID: peer, status: status, error: error?.code, errorMessage: error?.message)
        guard message.isQueued else { return self.decide([MessageStatus(id: id, recipient: recipient)]) }
        self.outgoing.update(id) { $0.settle(status, at: peer) }
        // If the disk is full, the status takes effect all the same, and is written later. A restart before that loads the message with its
        // old status.
        self.keep([.settle(id, recipient)], then: .settled(id, recipient))
    }

    /// Applies outcomes, and reports them to waiting callers and to event readers.
    mutating func decide(_ outcomes: [MessageStatus]) {
        var told: [MessageStatus] = []
        told.reserveCapacity(outcomes.count)
        for outcome in outcomes {
            guard let change = self.outgoing.decide(outcome.id, outcome.recipient) else { continue }
            told.append(outcome)
            for id in change.forgotten { self.keep([.remove(id)]) }
            guard let result = change.result else { continue }
            for waiter in change.waiters { self.settle(waiter, .success(result)) }
        }
        if !told.isEmpty { self.publish(.messageStatuses(told)) }
    }

    // MARK: Writing

    /// Writes changes of the outbox in one transaction, after all changes that were requested before.
    mutating func keep(_ changes: [OutboxChange], then: AfterKeeping = .nothing) {
        self.emit(.keep(self.keeping.begin(then), changes))
    }

    /// Concludes changes of the outbox that were written together, or of which none was written.
    mutating func kept(_ ids: [KeepID], _ error: EarshotError?) {
        var settled: [MessageStatus] = []
        for id in ids {
            guard let then = self.keeping.end(id) else { continue }
            if case .settled(let id, let recipient) = then {
                settled.append(MessageStatus(id: id, recipient: recipient))
                if error != nil { self.settleLater(Unsettled(id: id, peer: recipient.peerID)) }
                continue
            }
            self.decide(settled)
            settled.removeAll(keepingCapacity: true)
            switch then {
            case .nothing, .settled: break
            case .queued(let id, let body, let place): self.queued(id, body, place, error)
            case .read(let id, let peer):
                // The message was sent again under its id meanwhile, and its new row does not have the read status.
                guard self.outgoing[id]?.reading.contains(peer) != false else {
                    if self.wasRead(id, peer) { self.note([id], to: peer) }
                    break
                }
                self.outgoing.update(id) { $0.setReading(false, at: peer) }
                self.confirmedLate(id, peer)
                self.decide([MessageStatus(id: id, recipient: Message.Recipient(peerID: peer, status: .read))])
                if error == nil { self.note([id], to: peer) } else { self.settleLater(Unsettled(id: id, peer: peer)) }
            case .again(let id, let draft, let place): self.lookAgain(id, draft, place, error)
            case .settledAgain(let all): if error != nil { for one in all { self.settleLater(one) } }
            case .noted: self.readReceipts.notesSettled()
            }
        }
        self.decide(settled)
    }

    /// Writes that a message was read, unless another final status stands (`isLate`). After the write, the peer is told that this side knows.
    mutating func keepRead(_ id: MessageID, _ read: Message.Recipient, isLate: Bool = false) {
        self.outgoing.update(id) { $0.setReading(true, at: read.peerID) }
        self.keep(isLate ? [] : [.settle(id, read)], then: .read(id, read.peerID))
    }

    private mutating func settleLater(_ one: Unsettled) {
        if self.keeping.refused(one) { self.set(.unsettled, after: EarshotLimits.keepPause) }
    }

    /// Writes the present status of recipients whose status could not be written.
    mutating func settleAgain() {
        self.deadlines.cancel(.unsettled)
        var (written, changes): ([Unsettled], [OutboxChange]) = ([], [])
        for one in self.keeping.takeUnsettled() {
            // The message was evicted meanwhile, and its removal may have failed too. Or it was sent again without being queued.
            guard let message = self.outgoing[one.id], message.isQueued else {
                written.append(one)
                changes.append(.remove(one.id))
                continue
            }
            // A read status is in flight to the disk, and must not be overwritten after it. Or the message was sent again under its id: if
            // its row cannot be written, the row on disk becomes current again.
            if message.isBeingAdded || message.reading.contains(one.peer) {
                self.settleLater(one)
            } else if let recipient = message.recipients.first(where: { $0.peerID == one.peer && $0.status.isFinal }) {
                // A message that was sent again under its id gets a new status, which is written at that time.
                guard recipient.status != .read else {
                    self.keepRead(one.id, recipient)
                    continue
                }
                written.append(one)
                changes.append(.settle(one.id, recipient))
            }
        }
        if !changes.isEmpty { self.keep(changes, then: .settledAgain(written)) }
    }

    // MARK: Deadlines

    /// Schedules `expireMessages` for the deadline at the latest.
    mutating func expireMessages(at deadline: MonotonicInstant) {
        guard self.outgoing.scheduleCheck(at: deadline) else { return }
        // After a suspend, the timer is late because it stood still. The interval is limited so that the check comes sooner.
        self.set(.messages, after: EarshotLimits.look(at: deadline, from: self.now.monotonic))
    }

    /// Expires messages whose deadline has passed: their status becomes unconfirmed, or not sent. They are not sent again.
    mutating func expireMessages() {
        let (due, next) = self.outgoing.due(at: self.now.monotonic)
        for message in due {
            for recipient in message.recipients where !recipient.status.isFinal {
                if recipient.peerID.kind == .localsend {
                    let isUnderWay = self.cargoDone(.message(message.id), of: recipient.peerID)
                    let mayHaveArrived = isUnderWay || message.mayHaveArrived.contains(recipient.peerID)
                    self.expire(message.id, at: recipient.peerID, mayHaveArrived: mayHaveArrived)
                    continue
                }
                let conversation = Conversation(with: recipient.peerID, in: message.group)
                let mayHaveArrived = self.traffic[conversation]?.outbox.mayHaveArrived(message.id)
                _ = self.traffic[conversation]?.outbox.remove(message.id)
                self.expire(
                    message.id, at: recipient.peerID,
                    mayHaveArrived: mayHaveArrived ?? message.mayHaveArrived.contains(recipient.peerID))
                self.scheduleFlush(conversation)
            }
        }
        if let next { self.expireMessages(at: next) }
    }

    /// Expires a message at one recipient. The recipient can have received it only if it was given to a connection.
    mutating func expire(_ id: MessageID, at peer: PeerID, mayHaveArrived: Bool) {
        let name = peer.kind == .localsend ? self.shown(peer).name : self.facts(of: peer)?.name ?? "the peer"
        let isAsked = self.isJoining(peer) && self.records[peer]?.connection != nil
        let unanswered = isAsked ? "; \(name) has not answered the invitation yet" : ""
        let reason = self.failure(of: peer).map { "; \($0.message)" } ?? unanswered
        guard mayHaveArrived else {
            return self.settle(
                id, peer, .failed,
                EarshotError(.notSent, "the message could not be sent to \(name) in time; it never left this machine\(reason)"))
        }
        self.settle(
            id, peer, .unconfirmed,
            EarshotError(.unconfirmed, "\(name) has not confirmed the message in time; it may or may not have it\(reason)"))
    }

    // MARK: Start and stop

    /// Loads the queued messages of the last run, and the final statuses of others.
    mutating func loadOutbox(_ rows: [QueuedMessageRow]) {
        for row in rows {
            let left = self.timeLeft(until: row.deadline)
            var message = OutgoingMessage(
                id: row.id, contentType: row.contentType, size: row.size, body: nil, fingerprint: row.fingerprint, mode: .reliable,
                isQueued: true, sent: row.sent, deadline: self.now.monotonic + left, recipients: row.recipients,
                group: row.group, inReplyTo: row.inReplyTo)
            message.requeue()
            for id in self.outgoing.insert(message) { self.keep([.remove(id)]) }
            for recipient in message.recipients where !recipient.status.isFinal {
                if recipient.peerID.kind == .localsend {
                    guard recipient.status == .queued else {
                        let name = self.shown(recipient.peerID).name
                        let words = "this side was restarted while it was sent; \(name) may or may not have it"
                        self.settle(row.id, recipient.peerID, .unconfirmed, EarshotError(.unconfirmed, words))
                        continue
                    }
                    self.devices.shipments.append(.message(row.id), to: recipient.peerID)
                    continue
                }
                let conversation = Conversation(with: recipient.peerID, in: row.group)
                if let error = self.reasonNotToSend(in: conversation) {
                    self.settle(row.id, recipient.peerID, .failed, error)
                } else {
                    let entry = self.entry(message, to: recipient.peerID, body: nil)
                    self.traffic[conversation, default: MessageTraffic()].outbox.append(entry)
                }
            }
        }
    }

    /// Returns the reason why a message of an earlier run is not sent any more, or `nil`.
    private func reasonNotToSend(in conversation: Conversation) -> EarshotError? {
        if let group = conversation.group {
            return self.isFellowMember(conversation.peer, in: group) ? nil : .notMember(conversation.peer)
        }
        let facts = self.facts(of: conversation.peer)
        return facts?.session != nil || facts?.trust == .trusted ? nil : EarshotError(.notConnected, "the session has ended")
    }

    /// Lets pending traffic ask for sessions with its peers. This runs at the start, and periodically while traffic waits for a trusted
    /// peer without a session, because the peer may be reachable later.
    mutating func offerReach() { for peer in Array(self.records.keys) { self.spread(.withinReach, of: peer) } }

    /// Fails the unqueued messages of waiting callers, because sending stops.
    mutating func dismissSenders() {
        for conversation in Array(self.traffic.keys) { self.failOutbox(of: conversation, .stopping, queuedToo: false) }
        for (call, outcomes) in self.batches.dismiss(.stopping) { self.answer(call, .sent(outcomes)) }
    }
}

/// The status of a message at one recipient.
package struct MessageStatus: Sendable, Hashable {
    package let id: MessageID
    package let recipient: Message.Recipient
}
