public import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Sending messages: reliable, queued and unreliable ones.
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
        let draft = MessageDraft(
            to: recipients, contentType: contentType, body: body, mode: mode, id: id, queue: queue, timeout: timeout)
        let outcomes = await self.submit([draft]).outcomes()
        guard let outcome = outcomes.first else { throw Self.stopping }
        return try outcome.get()
    }

    /// Sends many messages, in their order, as ``send(to:contentType:body:mode:id:queue:timeout:)`` sends one: at once and without waiting.
    ///
    /// What goes to one peer goes out together, and one wait for the batch tells what became of each.
    public func submit(_ drafts: [MessageDraft]) -> MessageBatch {
        let batch = MessageBatch(count: drafts.count)
        var burst = SendingBurst(at: self.transport.timers.now)
        var outcomes: [MessageBatch.Outcome?] = []
        outcomes.reserveCapacity(drafts.count)
        for (index, draft) in drafts.enumerated() {
            outcomes.append(self.begin(draft, MessageBatch.Place(batch: batch, index: index), &burst))
        }
        self.end(burst)
        batch.settle(outcomes)
        return batch
    }

    /// What is known at once of its outcome; `nil` where its place will be told.
    private func begin(_ draft: MessageDraft, _ place: MessageBatch.Place, _ burst: inout SendingBurst) -> MessageBatch.Outcome? {
        do throws(EarshotError) {
            try self.check(draft, &burst)
            guard !draft.queue || draft.mode == .reliable else {
                throw EarshotError(.invalidParameter, "an unreliable message is not queued; leave one of the two out")
            }
            if burst.recipients != draft.recipients {
                let peers = try self.peers(draft.recipients)
                burst.use(draft.recipients, peers.map { self.recipient($0) })
            }
            let id = draft.id ?? self.messageIDs.next(secondsSince1970: burst.now.timeIntervalSince1970)
            if draft.id != nil, try self.isKnown(id, draft, place, &burst) { return nil }
            if draft.mode == .unreliable {
                return .success(self.sendUnreliable(id, draft, &burst))
            } else if draft.queue {
                try self.queue(id, draft, place, &burst)
            } else {
                self.sendReliable(id, draft, place, &burst)
            }
            return nil
        } catch {
            return .failure(error)
        }
    }

    /// A reliable message to peers by their names; see ``send(to:contentType:body:mode:id:queue:timeout:)``.
    public func send(
        to names: [String], contentType: String, body: ByteBuffer, id: MessageID? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(to: .peers(names), contentType: contentType, body: body, id: id, timeout: timeout)
    }

    private func check(_ draft: MessageDraft, _ burst: inout SendingBurst) throws(EarshotError) {
        let size = draft.body.readableBytes
        guard size <= WireLimits.messageBody else {
            throw EarshotError(
                .tooLarge, "a message has at most \(WireLimits.messageBody) bytes, not \(size); send it as a file instead")
        }
        guard draft.contentType == burst.checkedType || MessageFrame.isContentType(draft.contentType) else {
            throw EarshotError(
                .invalidParameter,
                "a content type is 1 to \(WireLimits.contentType) printable ASCII characters without a space at either end")
        }
        burst.checkedType = draft.contentType
        if let timeout = draft.timeout, timeout <= .zero || timeout > EarshotLimits.messageTimeoutLimit {
            throw EarshotError(.invalidParameter, "a message's timeout is more than 0 and at most 86400 seconds")
        }
    }

    // MARK: Recipients

    private func peers(_ recipients: Message.Recipients) throws(EarshotError) -> [PeerID] {
        switch recipients {
        case .peers(let names): return try self.namedPeers(names)
        case .all:
            guard !self.isStopping else { throw Self.stopping }
            let all = self.core.allFacts.filter { $0.session != nil && $0.trust != .blocked }.map(\.id)
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
            let id = try self.core.resolve(name)
            guard let facts = self.core.facts(of: id) else { throw EarshotError(.unknownPeer, "no peer with the id \(id) has been seen") }
            guard facts.trust != .blocked else {
                throw EarshotError(.forbidden, "\(facts.name) is blocked; run earshot unblock first")
            }
            guard facts.session != nil || facts.trust == .trusted else {
                throw EarshotError(.notConnected, "there is no session with \(facts.name); run earshot invite first")
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
        for id in peers { self.handle(.need(id, .session)) }
    }

    // MARK: The same again

    /// Whether the same message was sent before, and what became, or becomes, of it stands for this one.
    private func isKnown(
        _ id: MessageID, _ draft: MessageDraft, _ place: MessageBatch.Place, _ burst: inout SendingBurst
    ) throws(EarshotError) -> Bool {
        guard let known = self.outgoing[id] ?? self.sentUnreliable[id] else { return false }
        guard try known.isSame(contentType: draft.contentType, body: draft.body, mode: draft.mode, peers: burst.peers) else {
            throw EarshotError(.conflict, "the message id \(id) belongs to another message; give this one its own")
        }
        if known.isDone {
            place.settle(.success(known.result))
            return true
        }
        if known.isFinal {
            // Tried in vain before: it starts again under its id, which the receiver knows if it has it after all.
            self.forget(known)
            return false
        }
        guard known.isQueued else {
            self.outgoing[id]?.waiters.append(place)
            return true
        }
        // It may be on its way to the disk just now.
        self.enqueue(
            .outbox([]) { result in
                if case .failure(let error) = result {
                    place.settle(.failure(error))
                } else if let now = self.outgoing[id] {
                    place.settle(.success(now.result))
                } else {
                    var burst = SendingBurst(at: self.transport.timers.now)
                    if let outcome = self.begin(draft, place, &burst) { place.settle(outcome) }
                    self.end(burst)
                }
            })
        return true
    }

    private func forget(_ message: OutgoingMessage) {
        self.finishedOutgoing.removeAll { $0 == message.id }
        self.finishedOutgoingBytes -= message.cost
        self.outgoing[message.id] = nil
        if message.isQueued { self.enqueue(.outbox([.remove(message.id)]) { _ in }) }
    }

    // MARK: Ways

    private func sendReliable(_ id: MessageID, _ draft: MessageDraft, _ place: MessageBatch.Place, _ burst: inout SendingBurst) {
        if burst.needsInvitation { self.invite(burst.peers) }
        let deadline = burst.instant + (draft.timeout ?? EarshotLimits.messageTimeout)
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: draft.body, fingerprint: [], mode: .reliable,
            isQueued: false, sentAt: burst.now, deadline: deadline, recipients: burst.queued, waiters: [place])
        self.outgoing[id] = message
        self.expireMessages(at: deadline)
        for index in burst.current { self.enqueue(message, body: draft.body, on: index, &burst) }
    }

    private func sendUnreliable(_ id: MessageID, _ draft: MessageDraft, _ burst: inout SendingBurst) -> SentMessage {
        var recipients = burst.sent
        for (place, index) in burst.current.enumerated() {
            guard let failure = self.sendUnreliable(id, draft, on: index, &burst) else { continue }
            recipients[place] = failure
        }
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: draft.body, fingerprint: [], mode: .unreliable,
            isQueued: false, sentAt: burst.now, deadline: burst.instant, recipients: recipients)
        if draft.id == nil {
            self.sentUnreliable.append(message)
        } else {
            self.outgoing[id] = message
            self.keepFinished(message)
        }
        return message.result
    }

    /// Adds it to what goes out to one peer at once; where it cannot, as whom it has not reached.
    private func sendUnreliable(
        _ id: MessageID, _ draft: MessageDraft, on index: Int, _ burst: inout SendingBurst
    ) -> Message.Recipient? {
        guard let session = burst.all[index].session, let connection = burst.all[index].connection else {
            let recipient = burst.all[index]
            return if recipient.session == nil {
                Message.Recipient(
                    peerID: recipient.peer, status: .failed, error: .notConnected,
                    errorMessage: "there is no session with \(recipient.name); run earshot invite first")
            } else {
                Message.Recipient(
                    peerID: recipient.peer, status: .failed, error: .unavailable,
                    errorMessage: "\(recipient.name) is not connected now, and an unreliable message does not wait")
            }
        }
        guard connection.reserveUnreliable(draft.cost) else {
            return Message.Recipient(
                peerID: burst.all[index].peer, status: .failed, error: .unavailable,
                errorMessage: "the connection to \(burst.all[index].name) is busy, and an unreliable message does not wait")
        }
        if draft.body.readableBytes <= FrameWriter.smallBody {
            if burst.pending[index].template?.contentType != draft.contentType {
                let frame = self.unreliableFrame(id, draft, in: session, burst)
                // In order: its content type was looked at, and nothing else of it can be out of bounds.
                burst.pending[index].template = try? MessageTemplate(frame)
            }
            if burst.pending[index].encode(id, draft.body, cost: draft.cost) { return nil }
        }
        burst.pending[index].unreliable.append(.message(self.unreliableFrame(id, draft, in: session, burst)))
        burst.pending[index].unreliableCost += draft.cost
        return nil
    }

    private func unreliableFrame(_ id: MessageID, _ draft: MessageDraft, in session: SessionID, _ burst: SendingBurst) -> MessageFrame {
        MessageFrame(
            session: session, id: id, mode: .unreliable, sequence: 0, sentAtMilliseconds: burst.milliseconds,
            contentType: draft.contentType, body: draft.body)
    }

    private func queue(
        _ id: MessageID, _ draft: MessageDraft, _ place: MessageBatch.Place, _ burst: inout SendingBurst
    ) throws(EarshotError) {
        let age = min(draft.timeout ?? self.configuration.outboxAge, self.configuration.outboxAge)
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: nil,
            fingerprint: try OutgoingMessage.fingerprint(draft.contentType, draft.body), mode: .reliable, isQueued: true,
            sentAt: burst.now, deadline: burst.instant + age, recipients: burst.queued)
        guard self.queueUsage.hasRoom(for: message.cost) else {
            throw EarshotError(
                .noSpace,
                "the outbox is full: \(self.queueUsage.count) messages of \(self.queueUsage.bytes) bytes wait for their receivers; try again later"
            )
        }
        self.outgoing[id] = message
        self.queueUsage.add(message.cost)
        let row = QueuedMessage(
            id: id, contentType: draft.contentType, body: draft.body, fingerprint: message.fingerprint, sentAt: burst.now,
            deadline: burst.now.addingTimeInterval(age / .seconds(1)), recipients: message.recipients)
        self.enqueue(.outbox([.add(row)]) { result in self.queued(message, body: draft.body, result, place) })
    }

    /// A queued message is on disk, or could not be put there.
    private func queued(_ message: OutgoingMessage, body: ByteBuffer, _ result: Result<Void, EarshotError>, _ place: MessageBatch.Place) {
        if case .failure(let error) = result {
            self.outgoing[message.id] = nil
            self.queueUsage.remove(message.cost)
            place.settle(.failure(error))
            return
        }
        self.expireMessages(at: message.deadline)
        var burst = SendingBurst(at: self.transport.timers.now)
        let peers = message.recipients.map(\.peerID).filter { self.isQueued(message.id, for: $0) }
        burst.use(nil, peers.map { self.recipient($0) })
        for index in burst.current { self.enqueue(message, body: body, on: index, &burst) }
        self.end(burst)
        place.settle(.success(self.outgoing[message.id]?.result ?? message.result))
    }

    /// Puts a message at the end of what one peer is to get, once the burst ends.
    private func enqueue(_ message: OutgoingMessage, body: ByteBuffer, on index: Int, _ burst: inout SendingBurst) {
        let recipient = burst.all[index]
        guard recipient.session != nil || (message.isQueued ? recipient.isTrusted : self.core.hasInvited(recipient.peer)) else {
            self.settle(message.id, recipient.peer, .failed, EarshotError(.notConnected, "the session has ended"))
            return
        }
        burst.pending[index].entries.append(self.entry(message, body: message.isQueued && recipient.connection == nil ? nil : body))
    }

    private func entry(_ message: OutgoingMessage, body: ByteBuffer?) -> Outbox.Entry {
        self.nextSequence += 1
        return Outbox.Entry(
            id: message.id, sequence: self.nextSequence, contentType: message.contentType, size: message.size, body: body,
            sentAtMilliseconds: Self.milliseconds(message.sentAt), isQueued: message.isQueued)
    }

    func append(_ message: OutgoingMessage, for peer: PeerID, body: ByteBuffer?) {
        let entry = self.entry(message, body: body)
        self.traffic[peer, default: PeerTraffic()].outbox.append(entry)
    }

    /// Sends what a burst has gathered.
    private func end(_ burst: SendingBurst) {
        for (recipient, pending) in zip(burst.all, burst.pending) {
            if pending.encodedCost > 0 { recipient.connection?.sendUnreliable(pending.encoded, cost: pending.encodedCost) }
            if !pending.unreliable.isEmpty { recipient.connection?.sendUnreliable(pending.unreliable, cost: pending.unreliableCost) }
            guard let last = pending.entries.last else { continue }
            self.traffic[recipient.peer, default: PeerTraffic()].outbox.append(contentsOf: pending.entries)
            let isAwaited = pending.entries.contains { !$0.isQueued }
            // A caller that waits for it is told at once whether there is room again.
            if isAwaited { self.traffic[recipient.peer]?.outbox.resume() }
            self.scheduleFlush(recipient.peer)
            if last.isQueued { self.inviteForQueue(recipient.peer) }
            // A caller waits for it, and not for the pause that earlier failures have earned.
            self.handle(.need(recipient.peer, .connection(now: isAwaited)))
        }
    }

    /// A recipient as it stands now.
    private func recipient(_ peer: PeerID) -> SendingBurst.Recipient {
        SendingBurst.Recipient(peer, self.core.facts(of: peer)) { self.links[$0] }
    }

    /// Whether it has not gone out to that peer yet.
    func isQueued(_ id: MessageID, for peer: PeerID) -> Bool {
        self.outgoing[id]?.recipients.contains { $0.peerID == peer && $0.status == .queued } ?? false
    }

    static func milliseconds(_ date: Date) -> Int64 { date.boundedMilliseconds }
}
