package import EarshotWire
import OrderedCollections

/// What becomes of messages that were sent: told to their callers, kept where they are queued, and asked for later.
extension NodeCore {
    /// Decides what became of a message at one recipient; of a queued one, once that is on disk.
    mutating func settle(_ id: MessageID, _ peer: PeerID, _ status: Message.Status, _ error: EarshotError?) {
        guard let message = self.outgoing[id], message.settling[peer] == nil,
            message.recipients.contains(where: { $0.peerID == peer && !$0.status.isFinal })
        else { return }
        let recipient = Message.Recipient(peerID: peer, status: status, error: error?.code, errorMessage: error?.message)
        guard message.isQueued else { return self.decide([MessageStatus(id: id, recipient: recipient)]) }
        self.outgoing.update(id) { $0.settling[peer] = status }
        // Where the disk has no room for it, it stands all the same, and is written when there is: a restart before that finds the message as
        // it was.
        self.keep([.settle(id, recipient)], then: .settled(id, recipient))
    }

    /// Takes outcomes, and tells everybody who waits for one.
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

    // MARK: Keeping

    /// Has the outbox on disk changed, in one transaction, behind all changes that were asked for before.
    mutating func keep(_ changes: [OutboxChange], then: AfterKeeping = .nothing) {
        self.emit(.keep(self.keeping.begin(then), changes))
    }

    /// Changes of the outbox are on disk together, or none of them.
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
                // It was sent again under its id meanwhile, and its new row knows nothing of it.
                guard self.outgoing[id]?.reading.contains(peer) != false else {
                    if self.wasRead(id, peer) { self.note([id], to: peer) }
                    break
                }
                self.outgoing.update(id) { $0.reading.remove(peer) }
                self.confirmedLate(id, peer)
                self.decide([MessageStatus(id: id, recipient: Message.Recipient(peerID: peer, status: .read))])
                if error == nil { self.note([id], to: peer) } else { self.settleLater(Unsettled(id: id, peer: peer)) }
            case .again(let id, let draft, let place): self.lookAgain(id, draft, place, error)
            case .settledAgain(let all): if error != nil { for one in all { self.settleLater(one) } }
            case .noted: self.notes.settled()
            }
        }
        self.decide(settled)
    }

    /// Has the disk know that it was read, unless that is too late; and the peer that this is known, once all of that is written.
    mutating func keepRead(_ id: MessageID, _ read: Message.Recipient, isLate: Bool = false) {
        self.outgoing.update(id) { $0.reading.insert(read.peerID) }
        self.keep(isLate ? [] : [.settle(id, read)], then: .read(id, read.peerID))
    }

    private mutating func settleLater(_ one: Unsettled) {
        if self.unsettled.isEmpty { self.set(.unsettled, after: EarshotLimits.keepPause) }
        self.unsettled.append(one)
    }

    /// Writes what could not be written, as it stands now.
    mutating func settleAgain() {
        self.deadlines.cancel(.unsettled)
        let all = Array(self.unsettled)
        self.unsettled = []
        var (written, changes): ([Unsettled], [OutboxChange]) = ([], [])
        for one in all {
            // It was forgotten meanwhile, which the disk may have refused as well; or it was sent again, to be queued no more.
            guard let message = self.outgoing[one.id], message.isQueued else {
                written.append(one)
                changes.append(.remove(one.id))
                continue
            }
            // That it was read is on its way to the disk, and is not to be undone behind that; or it was sent anew under its id, and what
            // the disk has comes back where that does not get there.
            if message.isBeingAdded || message.reading.contains(one.peer) {
                self.settleLater(one)
            } else if let recipient = message.recipients.first(where: { $0.peerID == one.peer && $0.status.isFinal }) {
                // One that was sent anew under its id is decided again, and that is written when it is.
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

    // MARK: Time

    /// Has `expireMessages` run at the deadline at the latest.
    mutating func expireMessages(at deadline: MonotonicInstant) {
        if let next = self.messageExpiry, next <= deadline { return }
        self.messageExpiry = deadline
        // A machine that was suspended looks sooner than its timer, which has stood still.
        self.set(.messages, after: EarshotLimits.look(at: deadline, from: self.now.monotonic))
    }

    /// Tells the senders of what is past its deadline that it is unconfirmed, or was not sent; it is not sent again.
    mutating func expireMessages() {
        self.messageExpiry = nil
        let (due, next) = self.outgoing.due(at: self.now.monotonic)
        for message in due {
            for recipient in message.recipients where !recipient.status.isFinal {
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

    /// A message's time at one recipient is over. The recipient may have it only if a connection was given it.
    mutating func expire(_ id: MessageID, at peer: PeerID, mayHaveArrived: Bool) {
        let name = self.facts(of: peer)?.name ?? "the peer"
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

    // MARK: Beginning and ending

    /// Takes up what was queued when the last run ended, and what became of the rest.
    mutating func loadOutbox(_ rows: [QueuedMessageRow]) {
        for row in rows {
            let left = self.timeLeft(until: row.deadline)
            var message = OutgoingMessage(
                id: row.id, contentType: row.contentType, size: row.size, body: nil, fingerprint: row.fingerprint, mode: .reliable,
                isQueued: true, sent: row.sent, deadline: self.now.monotonic + left, recipients: row.recipients,
                group: row.group)
            for index in message.recipients.indices where !message.recipients[index].status.isFinal {
                message.recipients[index].status = .queued
                // The disk does not say whether the earlier run had sent it.
                message.mayHaveArrived.insert(message.recipients[index].peerID)
            }
            for id in self.outgoing.insert(message) { self.keep([.remove(id)]) }
            for recipient in message.recipients where recipient.status == .queued {
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

    /// Why what an earlier run has queued is not sent any more, if so.
    private func reasonNotToSend(in conversation: Conversation) -> EarshotError? {
        if let group = conversation.group {
            return self.isFellowMember(conversation.peer, in: group) ? nil : .notMember(conversation.peer)
        }
        let facts = self.facts(of: conversation.peer)
        return facts?.session != nil || facts?.trust == .trusted ? nil : EarshotError(.notConnected, "the session has ended")
    }

    /// Lets what waits for peers ask for sessions with them: at the beginning, and from time to time while something waits for a trusted
    /// peer without one, since who did not answer may be there later.
    mutating func offerReach() { for peer in Array(self.records.keys) { self.spread(.withinReach, of: peer) } }

    /// Nothing is sent any more: callers that wait for what is not queued are told so.
    mutating func dismissSenders() {
        for conversation in Array(self.traffic.keys) { self.failOutbox(of: conversation, .stopping, queuedToo: false) }
        for (call, outcomes) in self.batches.dismiss(.stopping) { self.answer(call, .sent(outcomes)) }
    }
}

/// What became of a message at one recipient.
package struct MessageStatus: Sendable, Hashable {
    package let id: MessageID
    package let recipient: Message.Recipient
}
