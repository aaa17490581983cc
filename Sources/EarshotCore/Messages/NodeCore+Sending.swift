package import EarshotWire
import NIOCore
import OrderedCollections

/// Sending messages of programs: reliable, queued and unreliable ones.
extension NodeCore {
    /// Sends messages in their order. The call is answered when the outcome of each is known. `room` gives the number of bytes of
    /// unreliable messages that each connection accepts now.
    mutating func send(_ drafts: [MessageDraft], room: OrderedDictionary<LinkID, Int>, _ call: CallID) {
        guard !drafts.isEmpty else { return self.answer(call, .sent([])) }
        self.batches.begin(call, count: drafts.count)
        var burst = SendingBurst(at: self.now, room: room)
        var known: [KnownOutcome] = []
        for (index, draft) in drafts.enumerated() {
            let place = MessagePlace(call: call, index: index)
            if let outcome = self.begin(draft, place, &burst) { known.append((index: index, outcome: outcome)) }
        }
        self.end(burst)
        self.settle(call, known)
    }

    mutating func settle(_ place: MessagePlace, _ outcome: MessageOutcome) {
        self.settle(place.call, CollectionOfOne((index: place.index, outcome: outcome)))
    }

    private mutating func settle(_ call: CallID, _ known: some Collection<KnownOutcome>) {
        if let outcomes = self.batches.settle(call, known) { self.answer(call, .sent(outcomes)) }
    }

    /// Begins to send a message. Returns its outcome if it is known at once; `nil` if its place is answered later.
    private mutating func begin(_ draft: MessageDraft, _ place: MessagePlace, _ burst: inout SendingBurst) -> MessageOutcome? {
        do throws(EarshotError) {
            try self.check(draft, &burst)
            guard !draft.queue || draft.mode == .reliable else {
                throw EarshotError(.invalidParameter, "an unreliable message is not queued; leave one of the two out")
            }
            if burst.recipients != draft.recipients || self.isAgain(draft) {
                try self.address(draft, &burst)
            }
            let id = draft.id ?? self.messageIDs.next(at: burst.now.wall, using: &self.random)
            burst.mayHaveArrived = []
            if draft.id != nil, try self.isKnown(id, draft, place, &burst) { return nil }
            if draft.mode == .unreliable {
                return .success(self.sendUnreliable(id, draft, &burst))
            } else if draft.queue {
                try self.queue(id, draft, place, &burst)
            } else {
                try self.sendReliable(id, draft, place, &burst)
            }
            return nil
        } catch {
            return .failure(error)
        }
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
        if let timeout = draft.timeout, timeout <= .zero || timeout > WireLimits.messageTimeout {
            throw EarshotError(.invalidParameter, "a message's timeout is more than 0 and at most 86400 seconds")
        }
    }

    // MARK: Recipients

    /// Sets the recipients of a draft for this message and the following ones.
    private func address(_ draft: MessageDraft, _ burst: inout SendingBurst) throws(EarshotError) {
        guard case .group(let name) = draft.recipients else {
            let addressed = try self.addressed(draft.recipients)
            return burst.use(draft.recipients, addressed.map { SendingBurst.Recipient($0, self.facts(of: $0)) })
        }
        guard !self.isStopping else { throw .stopping }
        let group = try self.groupID(name)
        // A repeated message goes to the members at the time when it was first sent.
        if let id = draft.id, let known = self.outgoing[id], known.group == group {
            return burst.use(nil, known.recipients.map { self.recipient($0.peerID, in: group) }, in: group)
        }
        let addressed = self.fellowMembers(of: group)
        guard !addressed.isEmpty else { throw .aloneInGroup(self.label(of: group)) }
        burst.use(draft.recipients, addressed.map { self.recipient($0, in: group) }, in: group)
    }

    /// Whether a message for a group was sent under the draft's id before.
    private func isAgain(_ draft: MessageDraft) -> Bool {
        guard let id = draft.id, !self.groups.isEmpty else { return false }
        return self.outgoing.group(of: id) != nil
    }

    private func recipient(_ peer: PeerID, in group: GroupID) -> SendingBurst.Recipient {
        let conversation = Conversation(with: peer, in: group)
        return SendingBurst.Recipient(conversation, self.carrier(of: conversation), self.records[peer]?.name)
    }

    private func addressed(_ recipients: Message.Recipients) throws(EarshotError) -> [PeerID] {
        switch recipients {
        case .peers(let names): return try self.recipients(names)
        case .group(let name): return self.fellowMembers(of: try self.groupID(name))
        case .all:
            guard !self.isStopping else { throw .stopping }
            let all = self.records.values.filter { $0.sessionID != nil && $0.trust != .blocked }.map(\.id)
            guard !all.isEmpty else { throw EarshotError(.notConnected, "there is no session with anybody", remedy: .invite) }
            return all
        }
    }

    /// Returns the peers that a message to these recipients would go to; an empty array if the recipients are not valid.
    package func reached(by recipients: Message.Recipients) -> [PeerID] { (try? self.addressed(recipients)) ?? [] }

    /// Returns the peers with these names, if messages to them are allowed: peers with a session, or trusted peers, which are then invited.
    /// - Throws: `unavailable`, `invalid-parameter`, `unknown-peer`, `ambiguous-peer`, `forbidden`, `not-connected`.
    package func recipients(_ names: [String]) throws(EarshotError) -> [PeerID] {
        guard !self.isStopping else { throw .stopping }
        guard (1...EarshotLimits.recipients).contains(names.count) else {
            throw EarshotError(.invalidParameter, "there are 1 to \(EarshotLimits.recipients) recipients")
        }
        var addressed: [PeerID] = []
        for name in names {
            let id = try self.recipient(name)
            if !addressed.contains(id) { addressed.append(id) }
        }
        return addressed
    }

    /// Returns the peer with this name, if messages to it are allowed: a peer with a session, or a trusted peer.
    func recipient(_ name: String) throws(EarshotError) -> PeerID {
        let id = try self.resolve(name)
        if id.kind == .localsend {
            try self.checkDevice(id, named: name)
            return id
        }
        guard let facts = self.facts(of: id) else { throw .unseen(id) }
        guard facts.trust != .blocked else { throw .blocked(facts.name) }
        guard facts.session != nil || facts.trust == .trusted else {
            throw EarshotError(.notConnected, "there is no session with \(facts.name)", remedy: .invite)
        }
        return id
    }

    // MARK: Repeated messages

    /// Whether a draft may repeat a message that is on disk, so that it needs a fingerprint.
    package func needsFingerprint(_ draft: MessageDraft) -> Bool {
        draft.queue || draft.id.flatMap { self.outgoing[$0]?.isQueued } ?? false
    }

    /// Whether the message was sent before, so that its earlier or pending outcome answers this call.
    private mutating func isKnown(
        _ id: MessageID, _ draft: MessageDraft, _ place: MessagePlace, _ burst: inout SendingBurst
    ) throws(EarshotError) -> Bool {
        guard let known = self.outgoing.find(id) else { return false }
        guard known.isSame(draft, peers: burst.addressed, in: burst.group) else {
            throw EarshotError(.conflict, "the message id \(id) belongs to another message; give this one its own")
        }
        if known.isDone {
            self.settle(place, .success(known.result))
            return true
        }
        if known.isFinal {
            // An earlier attempt failed. The message starts again under its id, by which the receiver recognises it if it has arrived after
            // all. If the outbox is full, nothing changes.
            if draft.queue { try self.checkQueue(for: draft) }
            self.outgoing.forget(known)
            burst.mayHaveArrived = known.maybeReached
            if known.isQueued { self.keep([.remove(id)]) }
            return false
        }
        guard known.isQueued else {
            _ = self.outgoing.update(id) { $0.wait(place) }
            return true
        }
        // A write of the message may be in flight.
        self.keep([], then: .again(id, draft, place))
        return true
    }

    /// Looks a repeated message up again, after the pending writes of the outbox have ended.
    mutating func lookAgain(_ id: MessageID, _ draft: MessageDraft, _ place: MessagePlace, _ error: EarshotError?) {
        if let error { return self.settle(place, .failure(error)) }
        // The message may have failed and started again meanwhile, and its new row may be in flight to the disk.
        if let now = self.outgoing[id], !now.isBeingAdded { return self.settle(place, .success(now.result)) }
        var burst = SendingBurst(at: self.now)
        let outcome = self.begin(draft, place, &burst)
        self.end(burst)
        if let outcome { self.settle(place, outcome) }
    }

    // MARK: Modes

    private mutating func sendReliable(
        _ id: MessageID, _ draft: MessageDraft, _ place: MessagePlace, _ burst: inout SendingBurst
    ) throws(EarshotError) {
        if burst.needsInvitation {
            if self.settings.sessionsEndWithPrograms { throw .withoutSession(burst.addressed.map(\.description).joined(separator: ", ")) }
            for peer in burst.addressed { self.inviteUnlessUnderWay(peer) }
        }
        let isToDevice = burst.addressed.contains { $0.kind == .localsend }
        let usual = isToDevice ? EarshotLimits.deviceMessageTimeout : EarshotLimits.messageTimeout
        let deadline = burst.now.monotonic + (draft.timeout ?? usual)
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: draft.body, fingerprint: [], mode: .reliable,
            isQueued: false, sent: burst.now.wall, deadline: deadline, recipients: burst.queued, group: burst.group,
            inReplyTo: draft.inReplyTo, waiters: [place], mayHaveArrived: burst.mayHaveArrived, pin: draft.pin)
        self.insert(message)
        self.expireMessages(at: deadline)
        for index in burst.current { self.append(message, body: draft.body, on: index, &burst) }
    }

    private mutating func sendUnreliable(_ id: MessageID, _ draft: MessageDraft, _ burst: inout SendingBurst) -> SentMessage {
        var recipients = burst.sent
        for (place, index) in burst.current.enumerated() {
            guard let failure = self.sendUnreliable(id, draft, on: index, &burst) else { continue }
            recipients[place] = failure
        }
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: draft.body, fingerprint: [], mode: .unreliable,
            isQueued: false, sent: burst.now.wall, deadline: burst.now.monotonic, recipients: recipients, group: burst.group,
            inReplyTo: draft.inReplyTo)
        if draft.id == nil { self.outgoing.insertUnreliable(message) } else { self.insert(message) }
        return message.result
    }

    /// Adds a message to the unreliable ones for a peer. If that is not possible, returns the recipient with its failure.
    private func sendUnreliable(
        _ id: MessageID, _ draft: MessageDraft, on index: Int, _ burst: inout SendingBurst
    ) -> Message.Recipient? {
        guard let session = burst.all[index].session, let link = burst.all[index].link else {
            let recipient = burst.all[index]
            return if recipient.session == nil {
                Message.Recipient(
                    peerID: recipient.peer, status: .failed, error: .notConnected,
                    errorMessage: "there is no session with \(recipient.name)")
            } else {
                Message.Recipient(
                    peerID: recipient.peer, status: .failed, error: .unavailable,
                    errorMessage: "\(recipient.name) is not connected now, and an unreliable message does not wait")
            }
        }
        guard burst.takeRoom(draft.cost, on: link) else {
            return Message.Recipient(
                peerID: burst.all[index].peer, status: .failed, error: .unavailable,
                errorMessage: "the connection to \(burst.all[index].name) is busy, and an unreliable message does not wait")
        }
        if draft.body.readableBytes <= EarshotLimits.copiedBody, draft.inReplyTo == nil {
            if burst.pending[index].template?.contentType != draft.contentType {
                let frame = self.unreliableFrame(id, draft, in: session, inReplyTo: nil, burst)
                // Encoding cannot fail: the content type was checked, and no other field can be out of bounds.
                burst.pending[index].template = try? MessageTemplate(frame)
            }
            if burst.pending[index].encode(id, draft.body, cost: draft.cost) { return nil }
        }
        let inReplyTo = self.takesReplies(burst.all[index].peer) ? draft.inReplyTo : nil
        burst.pending[index].unreliable.frames.append(self.unreliableFrame(id, draft, in: session, inReplyTo: inReplyTo, burst))
        burst.pending[index].unreliable.cost += draft.cost
        return nil
    }

    private func unreliableFrame(
        _ id: MessageID, _ draft: MessageDraft, in session: SessionID, inReplyTo: MessageID?, _ burst: SendingBurst
    ) -> MessageFrame {
        MessageFrame(
            session: session, id: id, mode: .unreliable, sequence: 0, sentAtMilliseconds: burst.now.wall.milliseconds,
            inReplyTo: inReplyTo, contentType: draft.contentType, body: draft.body)
    }

    private func checkQueue(for draft: MessageDraft) throws(EarshotError) {
        guard !draft.fingerprint.isEmpty else { throw EarshotError(.unavailable, "there is no memory to tell the message apart") }
        let usage = self.outgoing.queue
        guard usage.hasRoom(for: draft.cost) else {
            throw EarshotError(
                .noSpace,
                "the outbox is full: \(usage.count) messages of \(usage.bytes) bytes wait for their receivers; try again later")
        }
    }

    private mutating func queue(
        _ id: MessageID, _ draft: MessageDraft, _ place: MessagePlace, _ burst: inout SendingBurst
    ) throws(EarshotError) {
        try self.checkQueue(for: draft)
        let age = min(draft.timeout ?? self.settings.outboxAge, self.settings.outboxAge)
        let message = OutgoingMessage(
            id: id, contentType: draft.contentType, size: draft.body.readableBytes, body: nil, fingerprint: draft.fingerprint,
            mode: .reliable, isQueued: true, sent: burst.now.wall, deadline: burst.now.monotonic + age, recipients: burst.queued,
            group: burst.group, inReplyTo: draft.inReplyTo, isBeingAdded: true, mayHaveArrived: burst.mayHaveArrived,
            pin: draft.pin)
        self.insert(message)
        let row = QueuedMessage(
            id: id, contentType: draft.contentType, body: draft.body, fingerprint: draft.fingerprint, sent: burst.now.wall,
            deadline: burst.now.running + age, recipients: message.recipients, group: message.group, inReplyTo: message.inReplyTo)
        self.keep([.add(row)], then: .queued(id, draft.body, place))
    }

    /// Continues with a queued message after it was written, or could not be written.
    mutating func queued(_ id: MessageID, _ body: ByteBuffer, _ place: MessagePlace, _ error: EarshotError?) {
        if let error {
            self.outgoing.withdraw(id)
            return self.settle(place, .failure(error))
        }
        self.outgoing.update(id) { $0.added() }
        guard let message = self.outgoing[id] else {
            return self.settle(place, .failure(EarshotError(.storage, "the message is not in the outbox any more")))
        }
        guard message.deadline > self.now.monotonic else {
            // The write took longer than the message's timeout.
            for recipient in message.recipients {
                self.expire(id, at: recipient.peerID, mayHaveArrived: message.mayHaveArrived.contains(recipient.peerID))
            }
            return self.settle(place, .success(self.outgoing[id]?.result ?? message.result))
        }
        self.expireMessages(at: message.deadline)
        var burst = SendingBurst(at: self.now)
        let waiting = message.recipients.filter { $0.status == .queued }.map(\.peerID)
        burst.use(
            nil,
            waiting.map { peer in
                message.group.map { self.recipient(peer, in: $0) } ?? SendingBurst.Recipient(peer, self.facts(of: peer))
            }, in: message.group)
        for index in burst.current { self.append(message, body: body, on: index, &burst) }
        self.end(burst)
        self.settle(place, .success(self.outgoing[id]?.result ?? message.result))
    }

    // MARK: Bursts

    private mutating func insert(_ message: OutgoingMessage) {
        for id in self.outgoing.insert(message) { self.keep([.remove(id)]) }
    }

    /// Appends a message to the pending ones of a recipient, which are sent when the burst ends.
    private mutating func append(_ message: OutgoingMessage, body: ByteBuffer, on index: Int, _ burst: inout SendingBurst) {
        let recipient = burst.all[index]
        if recipient.peer.kind == .localsend { return self.ship(.message(message.id), to: recipient.peer) }
        if let group = message.group, !self.isFellowMember(recipient.peer, in: group) {
            return self.settle(message.id, recipient.peer, .failed, .notMember(recipient.name))
        }
        guard recipient.session != nil || (message.isQueued ? recipient.isTrusted : self.isJoining(recipient.peer)) else {
            return self.settle(message.id, recipient.peer, .failed, EarshotError(.notConnected, "the session has ended"))
        }
        let body = message.isQueued && recipient.link == nil ? nil : body
        burst.pending[index].entries.append(self.entry(message, to: recipient.peer, body: body))
    }

    mutating func entry(_ message: OutgoingMessage, to peer: PeerID, body: ByteBuffer?) -> Outbox.Entry {
        Outbox.Entry(
            id: message.id, sequence: self.outgoing.nextSequence(at: self.now.wall), contentType: message.contentType, size: message.size,
            body: body, sentAtMilliseconds: message.sent.milliseconds, isQueued: message.isQueued,
            mayHaveArrived: message.mayHaveArrived.contains(peer), inReplyTo: message.inReplyTo)
    }

    /// Sends the messages that a burst has gathered.
    private mutating func end(_ burst: SendingBurst) {
        for (recipient, pending) in zip(burst.all, burst.pending) {
            if let link = recipient.link, pending.unreliable.cost > 0 { self.emit(.sendUnreliable(link, pending.unreliable)) }
            guard let last = pending.entries.last else { continue }
            let conversation = recipient.conversation
            self.traffic[conversation, default: MessageTraffic()].outbox.append(contentsOf: pending.entries)
            let isAwaited = pending.entries.contains { !$0.isQueued }
            // A waiting caller gets the receiver's answer now: the inbox may have room again.
            if isAwaited { self.traffic[conversation]?.outbox.resume() }
            self.scheduleFlush(conversation)
            if last.isQueued, conversation.group == nil { self.inviteForQueue(recipient.peer) }
            // A waiting caller is not delayed by the pause after earlier failures.
            self.ensureConnection(recipient.peer, now: isAwaited)
        }
    }
}
