package import EarshotWire
import NIOCore
import OrderedCollections

/// Incoming messages, which are acknowledged when they are on disk and delivered once and in order, and read receipts for their senders.
extension NodeCore {
    /// Delivers reliable messages to the inbox, and publishes unreliable ones.
    mutating func messagesCame(_ frames: [MessageFrame], on link: LinkID) {
        guard let peer = self.links.peer(of: link), let facts = self.records[peer]?.facts, facts.link == link else { return }
        self.records[peer]?.presence.heard(at: self.now.wall)
        var intake = self.intake(of: frames.first?.session, from: facts)
        var kept: [InboxMessage] = []
        var live: [Message] = []
        var refused: [MessageReceipt] = []
        for frame in frames {
            if frame.session != intake.session {
                self.end(intake)
                intake = self.intake(of: frame.session, from: facts)
            }
            guard intake.isKnown else {
                guard frame.mode != .unreliable else { continue }
                refused.append(MessageReceipt(id: frame.id, outcome: .refused))
                intake.order.refuse()
                continue
            }
            if frame.mode == .unreliable {
                live.append(Self.liveMessage(frame, from: facts, in: intake.group, body: frame.body.compacted, at: self.now.wall))
                continue
            }
            let isResumed = intake.order.received(isResumed: frame.mode == .resumed)
            if kept.isEmpty { kept.reserveCapacity(frames.count) }
            kept.append(
                InboxMessage(
                    id: frame.id, senderID: peer, senderName: facts.name, contentType: frame.contentType, body: frame.body.compacted,
                    sent: WallTime(said: frame.sentAtMilliseconds), isResumed: isResumed,
                    followsRefusal: intake.order.isRefusing, group: intake.group, inReplyTo: frame.inReplyTo))
        }
        if !live.isEmpty { self.publish(.liveMessages(live)) }
        if !refused.isEmpty { self.send(refused, on: link) }
        self.end(intake)
        if !kept.isEmpty { self.emit(.deliver(link, kept)) }
    }

    /// A run of messages of one conversation that came together.
    private struct Intake {
        let session: SessionID?
        let conversation: Conversation
        /// The group to which the messages were sent.
        var group: GroupLabel?
        /// Whether the two share the session or the attached group, as far as this side knows.
        let isKnown: Bool
        /// The order of the conversation before the run, and after the frames so far.
        let before: IncomingOrder
        var order: IncomingOrder
    }

    /// Mutating although it changes nothing, and without closures, because the compiler would otherwise copy the core for the call and for
    /// each closure.
    private mutating func intake(of session: SessionID?, from peer: PeerFacts) -> Intake {
        var known: Conversation?
        var held: GroupID?
        var label: GroupLabel?
        if let session {
            known = self.conversation(naming: session, with: peer.id)
            // A refusal before the group is attached preserves the order within the group only. This also holds while this machine is
            // joining the group, while the peer is not a member yet, and just after this machine has left: later messages must not overtake
            // the refused ones.
            let group = GroupID(session: session)
            if known == nil, self.groups.holds(group) || self.records[peer.id]?.groups.wasShared(group) == true { held = group }
        }
        if let group = known?.group { label = self.label(of: group) }
        let conversation = known ?? Conversation(with: peer.id, in: held)
        let order: IncomingOrder? =
            if let group = conversation.group { self.records[peer.id]?.groups.order(in: group) } else { self.traffic[conversation]?.order }
        return Intake(
            session: session, conversation: conversation, group: label, isKnown: known != nil, before: order ?? IncomingOrder(),
            order: order ?? IncomingOrder())
    }

    private mutating func end(_ intake: Intake) {
        let conversation = intake.conversation
        if intake.order != intake.before {
            if let group = conversation.group {
                self.records[conversation.peer]?.groups.note(intake.order, in: group)
            } else {
                self.traffic[conversation, default: MessageTraffic()].note(intake.order)
            }
        }
        if !intake.isKnown, let session = intake.session { self.showEnd(of: GroupID(session: session), to: conversation.peer) }
    }

    /// Publishes unreliable messages that came together to the present event readers only. The storage of each body is about as large as
    /// the body.
    mutating func liveMessagesCame(_ frames: [MessageFrame], on link: LinkID) {
        guard let peer = self.links.peer(of: link), let facts = self.records[peer]?.facts, facts.link == link else { return }
        self.records[peer]?.presence.heard(at: self.now.wall)
        var live: [Message] = []
        live.reserveCapacity(frames.count)
        var intake = self.intake(of: frames.first?.session, from: facts)
        for frame in frames {
            if frame.session != intake.session { intake = self.intake(of: frame.session, from: facts) }
            guard intake.isKnown else { continue }
            live.append(Self.liveMessage(frame, from: facts, in: intake.group, body: frame.body, at: self.now.wall))
        }
        if !live.isEmpty { self.publish(.liveMessages(live)) }
    }

    /// Static, because a method of the core would copy the core for each of hundreds of thousands of messages a second.
    private static func liveMessage(
        _ frame: MessageFrame, from sender: PeerFacts, in group: GroupLabel?, body: ByteBuffer, at now: WallTime
    ) -> Message {
        Message(
            id: frame.id, direction: .incoming, senderID: sender.id, senderName: sender.name, contentType: frame.contentType, body: body,
            mode: .unreliable, sent: WallTime(said: frame.sentAtMilliseconds), received: now, readState: .unread,
            recipients: [], group: group, inReplyTo: frame.inReplyTo)
    }

    /// Handles the outcomes of deliveries: they are reported to senders in few frames, and to event readers in one event.
    mutating func delivered(_ reports: [DeliveryReport]) {
        var receipts: OrderedDictionary<PeerID, [MessageReceipt]> = [:]
        var received: [Message] = []
        for report in reports {
            var own: [MessageReceipt] = []
            own.reserveCapacity(report.messages.count)
            let isOfThisConnection = self.records[report.peer]?.connection == report.link
            for (index, id) in report.messages.enumerated() {
                let outcome: MessageReceipt.Outcome
                switch report.outcomes?[index] {
                case .held(let message)?:
                    received.append(message)
                    continue
                case .heldAlready?: continue
                case .stored(let message)?:
                    received.append(message)
                    outcome = .delivered
                case .duplicate?: outcome = .delivered
                case .refused(.inboxFull)?: outcome = .inboxFull
                case .refused(.storage)?, nil: outcome = .refused
                }
                // If the peer has reconnected, the message has come again, and the new delivery may have another outcome.
                guard isOfThisConnection || outcome == .delivered else { continue }
                own.append(MessageReceipt(id: id, outcome: outcome))
            }
            if !own.isEmpty { receipts[report.peer, default: []] += own }
        }
        if !received.isEmpty { self.publish(.messagesReceived(received)) }
        for (peer, receipts) in receipts { if let link = self.records[peer]?.connection { self.send(receipts, on: link) } }
    }

    /// Acknowledges messages of a peer after the program has taken them.
    mutating func wereTaken(_ ids: [MessageID], of sender: PeerID) {
        guard let link = self.records[sender]?.connection else { return }
        self.send(ids.map { MessageReceipt(id: $0, outcome: .delivered) }, on: link)
    }

    /// Sends receipts to a peer.
    private mutating func send(_ receipts: [MessageReceipt], on link: LinkID) {
        let frames = stride(from: 0, to: receipts.count, by: WireLimits.receiptsPerFrame).map { start in
            Frame.messageReceipts(Array(receipts[start..<min(start + WireLimits.receiptsPerFrame, receipts.count)]))
        }
        self.emit(.send(link, frames))
    }

    // MARK: Read receipts

    /// Whether to tell a sender that its messages were read here. If so, each receipt is stored until the sender has noted it.
    package func wantsReceipts(_ sender: PeerID) -> Bool { self.settings.receipts && self.isTalking(with: sender) }

    /// Handles messages of a peer that were read here. The read status and the pending receipts are on disk.
    mutating func wereRead(_ ids: [MessageID], of sender: PeerID) {
        self.readReceipts.insert(ids, of: sender)
        self.send(read: ids, to: sender)
    }

    /// Sends the read receipts that a peer has not noted yet.
    mutating func sendReceipts(to peer: PeerID) {
        guard self.settings.receipts else { return }
        guard !self.readReceipts.isLoaded(peer) else { return self.send(read: self.readReceipts.all(of: peer), to: peer) }
        if self.readReceipts.beginLoading(peer) { self.emit(.loadReceipts(peer)) }
    }

    /// Adds the receipts of earlier runs that the peer has not noted; `nil` if they could not be read.
    mutating func receiptsLoaded(_ ids: [MessageID]?, of peer: PeerID) {
        guard self.readReceipts.loaded(ids, of: peer) else { return }
        guard ids != nil else {
            // After a short disk failure, the peer gets its receipts now and not only on the next connection.
            if !self.isStopping, self.records[peer] != nil { self.set(.receipts(peer), after: EarshotLimits.keepPause) }
            return
        }
        self.send(read: self.readReceipts.all(of: peer), to: peer)
    }

    private mutating func send(read ids: [MessageID], to peer: PeerID) {
        guard !ids.isEmpty, let record = self.records[peer], record.isAttached || record.groups.isAttached, let link = record.connection
        else { return }
        self.send(ids.map { MessageReceipt(id: $0, outcome: .read) }, on: link)
    }

    /// Handles a sender's note that it knows of these readings: they are not sent again. The notes are gathered and written in one commit.
    mutating func noteKnown(_ ids: [MessageID], by peer: PeerID) {
        switch self.readReceipts.noted(ids, by: peer) {
        case .nothing: break
        case .scheduleWrite: self.set(.notes, after: EarshotLimits.noteDelay)
        case .write: self.keepNotes()
        }
    }

    mutating func keepNotes() {
        self.deadlines.cancel(.notes)
        let changes = self.readReceipts.takeNotes()
        if !changes.isEmpty { self.keep(changes, then: .noted) }
    }
}

extension WallTime {
    /// Creates a time from a peer's value, limited to the years that RFC 3339 section 5.6 can express. The time is only displayed, and no
    /// decision depends on it.
    fileprivate init(said milliseconds: Int64) {
        let bounds = WireLimits.sentAtMilliseconds
        self.init(milliseconds: min(max(milliseconds, bounds.lowerBound), bounds.upperBound))
    }
}
