package import EarshotWire
import NIOCore
import OrderedCollections

/// Messages that come in: acknowledged when they are on disk, delivered once and in order; and what their senders hear of their being read.
extension NodeCore {
    /// Queues messages for the inbox, and hands live ones on.
    mutating func messagesCame(_ frames: [MessageFrame], on link: LinkID) {
        guard let peer = self.linkPeers[link], let facts = self.records[peer]?.facts, facts.link == link else { return }
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
                intake.isRefusing = true
                continue
            }
            if frame.mode == .unreliable {
                live.append(Self.liveMessage(frame, from: facts, in: intake.group, body: frame.body.compacted, at: self.now.wall))
                continue
            }
            if frame.mode == .resumed { intake.isRefusing = false }
            if kept.isEmpty { kept.reserveCapacity(frames.count) }
            kept.append(
                InboxMessage(
                    id: frame.id, senderID: peer, senderName: facts.name, contentType: frame.contentType, body: frame.body.compacted,
                    sent: WallTime(said: frame.sentAtMilliseconds), isResumed: frame.mode == .resumed || intake.isFirst,
                    followsRefusal: intake.isRefusing, group: intake.group))
            intake.isFirst = false
            intake.hasKept = true
        }
        if !live.isEmpty { self.publish(.liveMessages(live)) }
        if !refused.isEmpty { self.send(refused, on: link) }
        self.end(intake)
        if !kept.isEmpty { self.emit(.deliver(link, kept)) }
    }

    /// Messages of one conversation that came together.
    private struct Intake {
        let session: SessionID?
        let conversation: Conversation
        /// The group that they were sent to.
        var group: GroupLabel?
        /// Whether the two peers hold the session, or are members of the group, by what this side knows.
        let isKnown: Bool
        /// Whether none has come in it before, on this connection.
        var isFirst: Bool
        var isRefusing: Bool
        let wasRefusing: Bool
        var hasKept = false
    }

    /// Mutating, though it changes nothing, and without closures: else the compiler makes a copy of the core for the call, and for each closure.
    private mutating func intake(of session: SessionID?, from peer: PeerFacts) -> Intake {
        var known: Conversation?
        var held: GroupID?
        var label: GroupLabel?
        if let session {
            known = self.conversation(naming: session, with: peer.id)
            // What is refused before the group is attached keeps the order of what is said there, and of nothing else; also while this machine
            // is joining it, or the peer is no member yet: what comes behind that later must not overtake it; and where it has just left it.
            let group = GroupID(session: session)
            if known == nil, self.groups.holds(group) || self.records[peer.id]?.groups.wasShared(group) == true { held = group }
        }
        if let group = known?.group { label = self.label(of: group) }
        let conversation = known ?? Conversation(with: peer.id, in: held)
        let (isFirst, isRefusing): (Bool, Bool)
        if let group = conversation.group {
            isFirst = self.records[peer.id]?.groups.hasSentMessage(in: group) != true
            isRefusing = self.records[peer.id]?.groups.isRefusing(in: group) == true
        } else {
            let traffic = self.traffic[conversation]
            isFirst = traffic?.hasSentMessage != true
            isRefusing = traffic?.isRefusing == true
        }
        return Intake(
            session: session, conversation: conversation, group: label, isKnown: known != nil, isFirst: isFirst, isRefusing: isRefusing,
            wasRefusing: isRefusing)
    }

    private mutating func end(_ intake: Intake) {
        let conversation = intake.conversation
        if let group = conversation.group {
            if intake.isRefusing != intake.wasRefusing { self.records[conversation.peer]?.groups.refuse(intake.isRefusing, in: group) }
            if intake.hasKept { self.records[conversation.peer]?.groups.messageCame(in: group) }
        } else {
            if intake.isRefusing != intake.wasRefusing { self.traffic[conversation, default: MessageTraffic()].refuse(intake.isRefusing) }
            if intake.hasKept { self.traffic[conversation, default: MessageTraffic()].received() }
        }
        if !intake.isKnown, let session = intake.session { self.showEnd(of: GroupID(session: session), to: conversation.peer) }
    }

    /// Hands live messages that came together on to those who read the events now, and no others. Their bodies have storage of about their
    /// own size.
    mutating func liveMessagesCame(_ frames: [MessageFrame], on link: LinkID) {
        guard let peer = self.linkPeers[link], let facts = self.records[peer]?.facts, facts.link == link else { return }
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

    /// Static, since a call that needs the core makes a copy of it, for each of hundreds of thousands a second.
    private static func liveMessage(
        _ frame: MessageFrame, from sender: PeerFacts, in group: GroupLabel?, body: ByteBuffer, at now: WallTime
    ) -> Message {
        Message(
            id: frame.id, direction: .incoming, senderID: sender.id, senderName: sender.name, contentType: frame.contentType, body: body,
            mode: .unreliable, sent: WallTime(said: frame.sentAtMilliseconds), received: now, readState: .unread,
            recipients: [], group: group)
    }

    /// Messages are on disk, or are not to be: what became of them is told in few frames, and once to the readers of events.
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
                // On another connection it has come again, and what becomes of it there may be something else.
                guard isOfThisConnection || outcome == .delivered else { continue }
                own.append(MessageReceipt(id: id, outcome: outcome))
            }
            if !own.isEmpty { receipts[report.peer, default: []] += own }
        }
        if !received.isEmpty { self.publish(.messagesReceived(received)) }
        for (peer, receipts) in receipts { if let link = self.records[peer]?.connection { self.send(receipts, on: link) } }
    }

    /// The program has taken messages of a peer that were held for it: now they are acknowledged.
    mutating func wereTaken(_ ids: [MessageID], of sender: PeerID) {
        guard let link = self.records[sender]?.connection else { return }
        self.send(ids.map { MessageReceipt(id: $0, outcome: .delivered) }, on: link)
    }

    /// Tells a peer what became of its messages.
    private mutating func send(_ receipts: [MessageReceipt], on link: LinkID) {
        let frames = stride(from: 0, to: receipts.count, by: WireLimits.receiptsPerFrame).map { start in
            Frame.messageReceipts(Array(receipts[start..<min(start + WireLimits.receiptsPerFrame, receipts.count)]))
        }
        self.emit(.send(link, frames))
    }

    // MARK: Being read

    /// Whether the sender of messages is to hear that they are read here, which is kept until it has taken note.
    package func wantsReceipts(_ sender: PeerID) -> Bool { self.settings.receipts && self.isTalking(with: sender) }

    /// Messages of a peer were read here, which is on disk; and that it is to be told, too.
    mutating func wereRead(_ ids: [MessageID], of sender: PeerID) {
        self.unnotedReads.insert(ids, of: sender)
        self.send(read: ids, to: sender)
    }

    /// Tells a peer which of its messages were read here, as far as it has not taken note.
    mutating func sendReceipts(to peer: PeerID) {
        guard self.settings.receipts else { return }
        guard !self.unnotedReads.isLoaded(peer) else { return self.send(read: self.unnotedReads.all(of: peer), to: peer) }
        guard self.receiptLoads[peer] == nil else { return }
        // What was noted before the store is asked may be on disk by the time of its answer, or not.
        self.receiptLoads[peer] = self.notes
        self.emit(.loadReceipts(peer))
    }

    /// Which messages of a peer were read in earlier runs, as far as it has not taken note; `nil` where that could not be read.
    mutating func receiptsLoaded(_ ids: [MessageID]?, of peer: PeerID) {
        guard let noted = self.receiptLoads.removeValue(forKey: peer) else { return }
        guard let ids else {
            // A disk that fails for a moment is not to keep it from the peer until the next connection.
            if !self.isStopping, self.records[peer] != nil { self.set(.receipts(peer), after: EarshotLimits.keepPause) }
            return
        }
        self.unnotedReads.load(ids.filter { !noted.contains($0, by: peer) && !self.notes.contains($0, by: peer) }, of: peer)
        self.send(read: self.unnotedReads.all(of: peer), to: peer)
    }

    private mutating func send(read ids: [MessageID], to peer: PeerID) {
        guard !ids.isEmpty, let record = self.records[peer], record.isAttached || record.groups.isAttached, let link = record.connection
        else { return }
        self.send(ids.map { MessageReceipt(id: $0, outcome: .read) }, on: link)
    }

    /// The sender knows that these were read: nothing more is to be told, from now on. They are written together, for one commit; what it
    /// makes up is none.
    mutating func noteKnown(_ ids: [MessageID], by peer: PeerID) {
        let ids = self.unnotedReads.noted(ids, by: peer)
        guard !ids.isEmpty else { return }
        self.notes.add(ids, by: peer)
        guard self.notes.count < WireLimits.receiptsPerFrame else { return self.keepNotes() }
        guard !self.isNoting else { return }
        self.isNoting = true
        self.set(.notes, after: EarshotLimits.noteDelay)
    }

    mutating func keepNotes() {
        self.isNoting = false
        self.deadlines.cancel(.notes)
        let changes = self.notes.take().map { OutboxChange.noted(Array($0.value), by: $0.key) }
        if !changes.isEmpty { self.keep(changes, then: .noted) }
    }
}

extension WallTime {
    /// A time as a peer says it, within the years that can be told (RFC 3339 section 5.6): it is shown to people and decides nothing.
    fileprivate init(said milliseconds: Int64) {
        let bounds = WireLimits.sentAtMilliseconds
        self.init(milliseconds: min(max(milliseconds, bounds.lowerBound), bounds.upperBound))
    }
}
