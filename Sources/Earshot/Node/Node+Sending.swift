public import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Sending messages: reliable, queued and unreliable ones (design section 5).
extension Node {
    /// Sends a message to one or more peers.
    ///
    /// A reliable one waits until each peer has it on disk, or the deadline (10 s by default) has passed. With `queue` it returns as soon as
    /// the message is in the outbox on disk, where it survives restarts and waits for absent peers until `outboxAge`, or the
    /// timeout where that is sooner. An unreliable one goes at once to the peers that are connected, and nowhere else.
    /// `id` may be given for safe retries: the same message sent again under it is delivered once. A trusted peer without a session
    /// is invited first; for a queued message, whenever it is seen.
    /// - Throws: before anything is sent: `invalid-parameter`, `too-large`, `unknown-peer`, `ambiguous-peer`, `forbidden` (blocked),
    ///   `not-connected` (no session), `conflict` (the id is another message's), `no-space` and `storage` (the outbox is full or cannot be
    ///   written). What happens later stands in the recipients.
    public func send(
        to recipients: Message.Recipients, contentType: String, body: ByteBuffer, mode: Message.Mode = .reliable, id: MessageID? = nil,
        queue: Bool = false, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try self.checkMessage(contentType: contentType, size: body.readableBytes, timeout: timeout)
        guard !queue || mode == .reliable else {
            throw EarshotError(.invalidParameter, "an unreliable message is not queued; leave one of the two out")
        }
        let peers = try self.peers(recipients)
        let id = id ?? .random()
        if let known = try await self.known(id, contentType: contentType, body: body, mode: mode, peers: peers) { return known }
        if mode == .unreliable { return self.sendUnreliable(id, to: peers, contentType: contentType, body: body) }
        if queue { return try await self.queue(id, to: peers, contentType: contentType, body: body, timeout: timeout) }
        self.invite(peers)
        let deadline = ContinuousClock.now + (timeout ?? EarshotLimits.messageTimeout)
        self.outgoing[id] = OutgoingMessage(
            id: id, contentType: contentType, size: body.readableBytes, body: body, fingerprint: [], mode: .reliable, isQueued: false,
            sentAt: Date(), deadline: deadline, recipients: peers.map { Message.Recipient(peerID: $0, status: .queued) })
        self.expireMessages(at: deadline)
        for peer in peers { self.enqueue(id, for: peer, body: body) }
        return await self.finished(id)
    }

    /// A reliable message to peers by their names; see ``send(to:contentType:body:mode:id:queue:timeout:)``.
    public func send(
        to names: [String], contentType: String, body: ByteBuffer, id: MessageID? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(to: .peers(names), contentType: contentType, body: body, id: id, timeout: timeout)
    }

    private func checkMessage(contentType: String, size: Int, timeout: Duration?) throws(EarshotError) {
        guard size <= WireLimits.messageBody else {
            throw EarshotError(
                .tooLarge, "a message has at most \(WireLimits.messageBody) bytes, not \(size); send it as a file instead")
        }
        guard MessageFrame.isContentType(contentType) else {
            throw EarshotError(
                .invalidParameter,
                "a content type is 1 to \(WireLimits.contentType) printable ASCII characters without a space at either end")
        }
        if let timeout, timeout <= .zero || timeout > EarshotLimits.messageTimeoutLimit {
            throw EarshotError(.invalidParameter, "a message's timeout is more than 0 and at most 86400 seconds")
        }
    }

    // MARK: Recipients

    private func peers(_ recipients: Message.Recipients) throws(EarshotError) -> [PeerID] {
        switch recipients {
        case .peers(let names): return try self.namedPeers(names)
        case .all:
            guard !self.isStopping else { throw Self.stopping }
            let all = self.records.values.filter { $0.session != nil && $0.trust != .blocked }.map(\.id)
            guard !all.isEmpty else { throw EarshotError(.notConnected, "there is no session with anybody; run earshot invite first") }
            return all
        }
    }

    /// The peers that may be sent to: in a session, or trusted.
    func namedPeers(_ names: [String]) throws(EarshotError) -> [PeerID] {
        guard !self.isStopping else { throw Self.stopping }
        guard (1...EarshotLimits.recipients).contains(names.count) else {
            throw EarshotError(.invalidParameter, "there are 1 to \(EarshotLimits.recipients) recipients")
        }
        var peers: OrderedSet<PeerID> = []
        for name in names {
            let id = try self.resolve(name)
            guard let record = self.records[id] else { throw EarshotError(.unknownPeer, "no peer with the id \(id) has been seen") }
            guard record.trust != .blocked else {
                throw EarshotError(.forbidden, "\(record.name) is blocked; run earshot unblock first")
            }
            guard record.session != nil || record.trust == .trusted else {
                throw EarshotError(.notConnected, "there is no session with \(record.name); run earshot invite first")
            }
            peers.append(id)
        }
        return Array(peers)
    }

    /// The peers that may be sent to by name: in a session, or trusted, and then invited.
    func recipients(_ names: [String]) throws(EarshotError) -> [PeerID] {
        let peers = try self.namedPeers(names)
        self.invite(peers)
        return peers
    }

    private func invite(_ peers: [PeerID]) {
        for id in peers where self.records[id]?.session == nil && self.pendingInvitation(with: id, .outgoing) == nil {
            _ = self.beginInvitation(to: id, context: [], timeout: nil)
        }
    }

    // MARK: The same again

    /// What became, or becomes, of the same message sent before; `nil` where it is to be sent now.
    private func known(
        _ id: MessageID, contentType: String, body: ByteBuffer, mode: Message.Mode, peers: [PeerID]
    ) async throws(EarshotError) -> SentMessage? {
        while let known = self.outgoing[id] {
            guard try known.isSame(contentType: contentType, body: body, mode: mode, peers: peers) else {
                throw EarshotError(.conflict, "the message id \(id) belongs to another message; give this one its own")
            }
            if known.isDone { return known.result }
            if known.isFinal {
                // Tried in vain before: it starts again under its id, which the receiver knows if it has it after all.
                self.forget(known)
                return nil
            }
            guard known.isQueued else { return await self.finished(id) }
            // It may be on its way to the disk just now.
            try await self.change([])
            if let now = self.outgoing[id] { return now.result }
        }
        return nil
    }

    private func forget(_ message: OutgoingMessage) {
        self.finishedOutgoing.removeAll { $0 == message.id }
        self.finishedOutgoingBytes -= message.cost
        self.outgoing[message.id] = nil
        if message.isQueued { self.enqueue(.outbox([.remove(message.id)]) { _ in }) }
    }

    private func finished(_ id: MessageID) async -> SentMessage {
        guard let message = self.outgoing[id] else { return SentMessage(id: id, recipients: []) }
        guard !message.isFinal else { return message.result }
        return await withCheckedContinuation { self.outgoing[id]?.waiters.append($0) }
    }

    // MARK: Ways

    private func sendUnreliable(_ id: MessageID, to peers: [PeerID], contentType: String, body: ByteBuffer) -> SentMessage {
        let now = Date()
        let recipients = peers.map { peer -> Message.Recipient in
            let name = self.records[peer]?.name ?? peer.description
            guard let record = self.records[peer], let session = record.session else {
                return Message.Recipient(
                    peerID: peer, status: .failed, error: .notConnected,
                    errorMessage: "there is no session with \(name); run earshot invite first")
            }
            guard record.isAttached, let connection = record.connection else {
                return Message.Recipient(
                    peerID: peer, status: .failed, error: .unavailable,
                    errorMessage: "\(name) is not connected now, and an unreliable message does not wait")
            }
            let frame = MessageFrame(
                session: session.id, id: id, mode: .unreliable, sequence: 0, sentAtMilliseconds: Self.milliseconds(now),
                contentType: contentType, body: body)
            guard connection.sendUnreliable(frame) else {
                return Message.Recipient(
                    peerID: peer, status: .failed, error: .unavailable,
                    errorMessage: "the connection to \(name) is busy, and an unreliable message does not wait")
            }
            return Message.Recipient(peerID: peer, status: .sent)
        }
        let message = OutgoingMessage(
            id: id, contentType: contentType, size: body.readableBytes, body: body, fingerprint: [], mode: .unreliable, isQueued: false,
            sentAt: now, deadline: .now, recipients: recipients)
        self.outgoing[id] = message
        self.keepFinished(message)
        return message.result
    }

    private func queue(
        _ id: MessageID, to peers: [PeerID], contentType: String, body: ByteBuffer, timeout: Duration?
    ) async throws(EarshotError) -> SentMessage {
        let age = min(timeout ?? self.configuration.outboxAge, self.configuration.outboxAge)
        let now = Date()
        let message = OutgoingMessage(
            id: id, contentType: contentType, size: body.readableBytes, body: nil,
            fingerprint: try OutgoingMessage.fingerprint(contentType, body), mode: .reliable, isQueued: true, sentAt: now,
            deadline: .now + age, recipients: peers.map { Message.Recipient(peerID: $0, status: .queued) })
        guard self.queueUsage.hasRoom(for: message.cost) else {
            throw EarshotError(
                .noSpace,
                "the outbox is full: \(self.queueUsage.count) messages of \(self.queueUsage.bytes) bytes wait for their receivers; try again later"
            )
        }
        self.outgoing[id] = message
        self.queueUsage.add(message.cost)
        do throws(EarshotError) {
            try await self.change([
                .add(
                    QueuedMessage(
                        id: id, contentType: contentType, body: body, fingerprint: message.fingerprint, sentAt: now,
                        deadline: now.addingTimeInterval(age / .seconds(1)), recipients: message.recipients))
            ])
        } catch {
            self.outgoing[id] = nil
            self.queueUsage.remove(message.cost)
            throw error
        }
        self.expireMessages(at: message.deadline)
        for peer in peers { self.enqueue(id, for: peer, body: body) }
        return self.outgoing[id]?.result ?? message.result
    }

    /// Puts a message at the end of what one peer is to get.
    private func enqueue(_ id: MessageID, for peer: PeerID, body: ByteBuffer) {
        guard let message = self.outgoing[id], self.isQueued(id, for: peer), let record = self.records[peer] else { return }
        guard record.session != nil || (message.isQueued ? record.trust == .trusted : self.isInviting(peer)) else {
            self.settle(id, peer, .failed, EarshotError(.notConnected, "the session has ended"))
            return
        }
        self.append(message, for: peer, body: message.isQueued && !record.isAttached ? nil : body)
        // Whoever waits for it is told at once whether there is room again.
        if !message.isQueued, record.outbox.isPaused { self.records[peer]?.outbox.resume() }
        self.scheduleFlush(peer)
        if message.isQueued { self.inviteForQueue(peer) }
        // Somebody waits for it, and not for the pause that earlier failures have earned.
        self.ensureConnection(peer, now: !message.isQueued)
    }

    func append(_ message: OutgoingMessage, for peer: PeerID, body: ByteBuffer?) {
        self.nextSequence += 1
        self.records[peer]?.outbox.append(
            Outbox.Entry(
                id: message.id, sequence: self.nextSequence, contentType: message.contentType, size: message.size, body: body,
                sentAtMilliseconds: Self.milliseconds(message.sentAt), isQueued: message.isQueued))
    }

    /// Whether it has not gone out to that peer yet.
    func isQueued(_ id: MessageID, for peer: PeerID) -> Bool {
        self.outgoing[id]?.recipients.contains { $0.peerID == peer && $0.status == .queued } ?? false
    }

    private static func milliseconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970 * 1000) }
}
