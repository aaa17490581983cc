import DequeModule
public import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Reliable messages (design section 5): delivered once and in order, acknowledged when they are on the receiver's disk.
extension Node {
    // MARK: Sending

    /// Sends a message to one or more peers and waits until each has it on disk, or the deadline (10 s by default) has passed.
    ///
    /// `id` may be given for safe retries: the same message sent again under it is delivered once. A trusted peer without a session
    /// is invited first.
    /// - Throws: before anything is sent: `invalid-parameter`, `too-large`, `unknown-peer`, `ambiguous-peer`, `forbidden` (blocked),
    ///   `not-connected` (no session), `conflict` (the id is another message's). What happens later stands in the recipients.
    public func send(
        to names: [String], contentType: String, body: ByteBuffer, id: MessageID? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try self.checkMessage(contentType: contentType, size: body.readableBytes, timeout: timeout)
        let peers = try self.recipients(names)
        let id = id ?? .random()
        if let known = self.outgoing[id] {
            guard known.body == body, known.contentType == contentType, Set(known.recipients.map(\.peerID)) == Set(peers) else {
                throw EarshotError(.conflict, "the message id \(id) belongs to another message; give this one its own")
            }
            if !known.isFinal || known.recipients.allSatisfy({ $0.status == .delivered || $0.status == .read }) {
                return await self.finished(id)
            }
            // Tried in vain before: it starts again under its id, which the receiver knows if it has it after all.
            self.finishedOutgoing.removeAll { $0 == id }
            self.finishedOutgoingBytes -= known.cost
        }
        let deadline = ContinuousClock.now + (timeout ?? EarshotLimits.messageTimeout)
        self.outgoing[id] = OutgoingMessage(
            id: id, contentType: contentType, body: body, sentAt: Date(), deadline: deadline,
            recipients: peers.map { Message.Recipient(peerID: $0, status: .queued) })
        self.expireMessages(at: deadline)
        for peer in peers { await self.queue(id, for: peer) }
        return await self.finished(id)
    }

    private func checkMessage(contentType: String, size: Int, timeout: Duration?) throws(EarshotError) {
        guard size <= WireLimits.messageBody else {
            throw EarshotError(
                .tooLarge, "a message has at most \(WireLimits.messageBody) bytes, not \(size); send it as a file instead")
        }
        guard (1...WireLimits.contentType).contains(contentType.utf8.count), contentType.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw EarshotError(.invalidParameter, "a content type is 1 to \(WireLimits.contentType) printable ASCII characters")
        }
        if let timeout, timeout <= .zero || timeout > EarshotLimits.messageTimeoutLimit {
            throw EarshotError(.invalidParameter, "a message's timeout is more than 0 and at most 86400 seconds")
        }
    }

    /// The peers that may be sent to: in a session, or trusted, and then invited.
    func recipients(_ names: [String]) throws(EarshotError) -> [PeerID] {
        guard !self.isStopping else { throw Self.stopping }
        guard (1...EarshotLimits.recipients).contains(names.count) else {
            throw EarshotError(.invalidParameter, "there are 1 to \(EarshotLimits.recipients) recipients")
        }
        var peers: [PeerID] = []
        for name in names {
            let id = try self.resolve(name)
            guard let record = self.records[id] else { throw EarshotError(.unknownPeer, "no peer with the id \(id) has been seen") }
            guard record.trust != .blocked else {
                throw EarshotError(.forbidden, "\(record.name) is blocked; run earshot unblock first")
            }
            guard record.session != nil || record.trust == .trusted else {
                throw EarshotError(.notConnected, "there is no session with \(record.name); run earshot invite first")
            }
            if !peers.contains(id) { peers.append(id) }
        }
        for id in peers where self.records[id]?.session == nil && self.pendingInvitation(with: id, .outgoing) == nil {
            _ = self.beginInvitation(to: id, context: [], timeout: nil)
        }
        return peers
    }

    private func queue(_ id: MessageID, for peer: PeerID) async {
        while self.records[peer]?.outbox.hasRoom == false, self.isQueued(id, for: peer), !self.isStopping {
            await withCheckedContinuation { self.records[peer]?.outbox.roomWaiters.append($0) }
        }
        // The deadline may have passed while it waited for room.
        guard let message = self.outgoing[id], self.isQueued(id, for: peer), self.records[peer] != nil else { return }
        guard !self.isStopping else {
            self.settle(id, peer, .failed, Self.stopping)
            return
        }
        guard self.records[peer]?.session != nil || self.isInviting(peer) else {
            self.settle(id, peer, .failed, EarshotError(.notConnected, "the session has ended"))
            return
        }
        self.nextSequence += 1
        self.records[peer]?.outbox.append(
            Outbox.Entry(
                id: id, sequence: self.nextSequence, contentType: message.contentType, body: message.body,
                sentAtMilliseconds: Int64(message.sentAt.timeIntervalSince1970 * 1000)))
        self.scheduleFlush(peer)
        self.ensureConnection(peer)
    }

    private func isQueued(_ id: MessageID, for peer: PeerID) -> Bool {
        self.outgoing[id]?.recipients.contains { $0.peerID == peer && $0.status == .queued } ?? false
    }

    /// Lets the callers that are queued on this actor add theirs first: a burst goes out as one write.
    private func scheduleFlush(_ peer: PeerID) {
        guard let record = self.records[peer], record.isAttached, !record.outbox.isFlushing else { return }
        self.records[peer]?.outbox.isFlushing = true
        self.input.yield(.flush(peer))
    }

    func flushOutbox(_ peer: PeerID) {
        self.records[peer]?.outbox.isFlushing = false
        guard let record = self.records[peer], record.isAttached, let connection = record.connection, let session = record.session,
            let entries = self.records[peer]?.outbox.takeUnsent(), !entries.isEmpty
        else { return }
        for entry in entries { self.markSent(entry.id, peer) }
        connection.send(entries.map { $0.frame(in: session.id) })
    }

    private func markSent(_ id: MessageID, _ peer: PeerID) {
        guard let index = self.outgoing[id]?.recipients.firstIndex(where: { $0.peerID == peer && $0.status == .queued }) else { return }
        self.outgoing[id]?.recipients[index].status = .sent
    }

    private func finished(_ id: MessageID) async -> SentMessage {
        guard let message = self.outgoing[id] else { return SentMessage(id: id, recipients: []) }
        guard !message.isFinal else { return message.result }
        return await withCheckedContinuation { self.outgoing[id]?.waiters.append($0) }
    }

    // MARK: Outcomes

    func received(_ receipts: [MessageReceipt], from peer: PeerID) {
        for receipt in receipts {
            guard self.records[peer]?.outbox.remove(receipt.id) == true else { continue }
            switch receipt.outcome {
            case .delivered, .read: self.settle(receipt.id, peer, .delivered, nil)
            case .inboxFull:
                self.settle(receipt.id, peer, .failed, EarshotError(.inboxFull, "the receiver's inbox is full; try again later"))
            case .refused:
                self.settle(receipt.id, peer, .failed, EarshotError(.unavailable, "the receiver could not keep the message"))
            }
        }
        self.resumeRoomWaiters(of: peer)
    }

    private func settle(_ id: MessageID, _ peer: PeerID, _ status: Message.Status, _ error: EarshotError?) {
        guard let index = self.outgoing[id]?.recipients.firstIndex(where: { $0.peerID == peer && !$0.status.isFinal }) else { return }
        self.outgoing[id]?.recipients[index].status = status
        self.outgoing[id]?.recipients[index].error = error?.code
        self.outgoing[id]?.recipients[index].errorMessage = error?.message
        guard let message = self.outgoing[id] else { return }
        self.tell(.messageStatus(id, message.recipients[index]))
        guard message.isFinal else { return }
        self.outgoing[id]?.waiters = []
        self.keepFinished(message)
        for waiter in message.waiters { waiter.resume(returning: message.result) }
    }

    /// Finished messages stay for a while, for whoever asks for their statuses.
    private func keepFinished(_ message: OutgoingMessage) {
        self.finishedOutgoing.append(message.id)
        self.finishedOutgoingBytes += message.cost
        while self.finishedOutgoing.count > EarshotLimits.outgoingHistory
            || self.finishedOutgoingBytes > EarshotLimits.outgoingHistoryBytes,
            self.finishedOutgoing.count > 1, let oldest = self.finishedOutgoing.popFirst()
        {
            guard let gone = self.outgoing.removeValue(forKey: oldest) else { continue }
            self.finishedOutgoingBytes -= gone.cost
        }
    }

    private func resumeRoomWaiters(of peer: PeerID, evenFull: Bool = false) {
        guard let waiters = self.records[peer]?.outbox.takeRoomWaiters(evenFull: evenFull) else { return }
        for waiter in waiters { waiter.resume() }
    }

    /// A session has attached, or could not be had.
    func resumeWaiters(of peer: PeerID) {
        self.resumeRoomWaiters(of: peer)
        self.resumeTransfers(of: peer)
    }

    func failOutbox(of peer: PeerID, _ error: EarshotError) {
        for id in self.records[peer]?.outbox.ids ?? [] {
            guard self.records[peer]?.outbox.remove(id) == true else { continue }
            self.settle(id, peer, .failed, error)
        }
        self.resumeRoomWaiters(of: peer)
    }

    /// The invitation that messages or files waited for has not been accepted.
    func failWaitingForSession(of peer: PeerID, _ error: EarshotError) {
        guard self.records[peer]?.session == nil else { return }
        self.failOutbox(of: peer, error)
        self.interruptTransfers(of: peer, error.code, error.message)
    }

    /// Has `expireMessages` run at the deadline at the latest.
    private func expireMessages(at deadline: ContinuousClock.Instant) {
        if let next = self.messageExpiry {
            guard deadline < next.at else { return }
            next.timer.cancel()
        }
        self.messageExpiry = (deadline, self.schedule(.messages, after: max(deadline - .now, .zero)))
    }

    /// Tells the senders of what is past its deadline that it is unconfirmed; it is not sent again.
    func expireMessages() {
        self.messageExpiry = nil
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for message in self.outgoing.values where !message.isFinal {
            guard message.deadline <= now else {
                next = min(next ?? message.deadline, message.deadline)
                continue
            }
            for recipient in message.recipients where !recipient.status.isFinal {
                _ = self.records[recipient.peerID]?.outbox.remove(message.id)
                self.settle(
                    message.id, recipient.peerID, .unconfirmed,
                    EarshotError(
                        .unconfirmed,
                        "\(self.records[recipient.peerID]?.name ?? "the peer") has not confirmed the message in time; it may or may not have it"
                    ))
                // Those too whose own time is up while there is still no room.
                self.resumeRoomWaiters(of: recipient.peerID, evenFull: true)
            }
        }
        if let next { self.expireMessages(at: next) }
    }

    // MARK: Receiving

    /// Queues a message for the inbox; `true` where its weight stays with it until it is on disk.
    func received(_ frame: MessageFrame, weight: Int, on connection: Connection) -> Bool {
        let peer = connection.peer.id
        guard frame.mode == .reliable else { return false }
        guard let record = self.records[peer], record.session?.id == frame.session else {
            connection.send([.messageReceipts([MessageReceipt(id: frame.id, outcome: .refused)])])
            return false
        }
        self.enqueue(
            .deliver(
                InboxMessage(
                    id: frame.id, senderID: peer, senderName: record.name, contentType: frame.contentType, body: frame.body.compacted,
                    sentAt: Date(timeIntervalSince1970: Double(frame.sentAtMilliseconds) / 1000)),
                from: connection, weight: weight))
        return true
    }

    // MARK: Inbox

    /// Received messages, oldest first, at most `limit` (1 to 1,000).
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `storage`.
    public func messages(state: Message.ReadState?, from name: String?, limit: Int) async throws(EarshotError) -> [Message] {
        var sender: PeerID?
        if let name { sender = try self.resolve(name) }
        return try await self.store.messages(state: state, from: sender, limit: min(max(limit, 1), 1000))
    }

    /// One message in either direction.
    /// - Throws: `not-found`; `conflict` where two senders gave the id and `from` does not say which.
    public func message(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        if name == nil, let own = self.outgoing[id] {
            return Message(
                id: id, direction: .outgoing, senderID: self.id, senderName: self.configuration.displayName.description,
                contentType: own.contentType, body: own.body, mode: .reliable, sentAt: own.sentAt, receivedAt: nil, readState: .read,
                recipients: own.recipients)
        }
        return try await self.received(id, from: name)
    }

    private func received(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        var sender: PeerID?
        if let name { sender = try self.resolve(name) }
        let messages = try await self.store.messages(id: id, from: sender)
        guard let message = messages.first else { throw EarshotError(.notFound, "there is no message \(id)") }
        guard messages.count == 1 else {
            throw EarshotError(.conflict, "\(messages.count) peers have sent a message \(id); say which by from=PEER")
        }
        return message
    }

    /// Marks a received message read.
    /// - Throws: as ``message(_:from:)``.
    public func markRead(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        let message = try await self.received(id, from: name)
        guard message.readState == .unread else { return message }
        guard let read = try await self.store.markRead(id: id, from: message.senderID) else {
            throw EarshotError(.notFound, "there is no message \(id)")
        }
        self.unreadMessages = await self.store.unreadCount()
        return read
    }
}
